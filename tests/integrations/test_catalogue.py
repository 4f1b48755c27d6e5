"""Inputs on which transformers' own `token_healing` fails, with the right answers.

Each was seen to crash, to rewrite the prompt, to heal nothing, or to heal only one token greedily.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from integrations_toy import toy_model

import healfsa
from healfsa.integrations.transformers import Generator

pytestmark = pytest.mark.model
SHARED = Path(os.environ.get("HEALFSA_SHARED", Path(__file__).resolve().parents[3] / "shared"))


@pytest.fixture(scope="module")
def real(smollm2):
    return Generator(*smollm2)


def check(generator, prompt, **options):
    """Generate; the ids kept and written must spell the prompt first. Return the details."""
    options = {"max_new_tokens": 3, "do_sample": False, "details": True} | options
    details = generator.generate(prompt, **options)
    for each in details if isinstance(details, list) else [details]:
        spelled = generator.engine.vocabulary.decode_bytes([*each.boundary.keep, *each.token_ids])
        assert spelled == prompt.encode() + each.data
    return details


def first_tokens(generator, prompt) -> set[bytes]:
    """Return the bytes of all tokens that may come first."""
    engine = generator.engine
    matcher = engine.matcher(None, prompt=engine.heal(prompt))
    bitmask = healfsa.allocate_bitmask(1, engine.vocabulary.size)
    matcher.fill_bitmask(bitmask, 0)
    bits = [i for i in range(engine.vocabulary.size) if bitmask[0, i // 32] >> (i % 32) & 1]
    return {engine.vocabulary.bytes_of(i) for i in bits}


def test_01_a_character_of_several_tokens(real):
    check(real, "café")
    if real.engine.heal("café").owed == "é".encode():
        assert {b"\xc3", "é".encode()} <= first_tokens(real, "café")


@pytest.mark.parametrize("prompt", ["I like", "def f():\n    ret", "das Ei"])
def test_05_tails_with_a_leading_space_are_healed(real, prompt):
    check(real, prompt)
    assert any(len(token) > len(real.engine.heal(prompt).owed) for token in first_tokens(real, prompt))


def test_05_ret_becomes_return(real):
    assert check(real, "def f():\n    ret").text.startswith("urn")


@pytest.mark.parametrize("prompt", ["Read a book ", "import ", "for i in range(10):\n", "tab\t", "  indented  ", " "])
def test_06_white_space_is_kept(real, prompt):
    check(real, prompt)


def test_07_a_chat_template_stays_whole(real):
    prompt = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nHel"
    details = real.generate(prompt, max_new_tokens=2, do_sample=False, details=True)
    assert [i for i in details.boundary.keep if i in (1, 2)] == [1, 2, 1]
    assert details.text.startswith("lo")


def test_08_the_prompt_is_never_rewritten(real):
    check(real, "1+1=2;1+1=2;1+1=q")


@pytest.mark.parametrize("prompt", ["import numpy as np\nimport pandas as pd\nimport(", '"re', '"-'])
def test_09_neither_here(real, prompt):
    check(real, prompt)


def test_10_a_batch_is_its_rows(real):
    prompts = [
        'a "q',
        "a rather long prompt that makes padding necessary for the others: das Ei",
        "x.re",
        "Das ist ein Ei",
    ]
    options = {"max_new_tokens": 3, "do_sample": False}
    assert real.generate(prompts, **options) == [real.generate(prompt, **options) for prompt in prompts]


def test_11_samples_are_drawn_from_the_healed_distribution(real):
    torch.manual_seed(0)
    details = check(real, "x.re", do_sample=True, num_return_sequences=6, max_new_tokens=1, temperature=2.0)
    assert len({each.token_ids[0] for each in details}) > 1


def test_12_a_stream_shows_what_was_healed(real):
    prompt = "The link is https:"
    pieces = list(real.stream(prompt, max_new_tokens=4, do_sample=False))
    assert "".join(pieces).startswith("//")


def test_13_the_grammar_goes_on_where_the_prompt_ended(real):
    text = real.generate("The link is http:", healfsa.regex(r"//[a-z]{3,8}\.com"), max_new_tokens=12, do_sample=False)
    assert re.fullmatch(r"//[a-z]{3,8}\.com", text)


def test_14_never_reduceduce(real):
    text = real.generate("x.re", healfsa.regex(r"(duce|turn|place)\("), max_new_tokens=6, do_sample=False)
    assert text in ("duce(", "turn(", "place(")


@pytest.mark.parametrize("prompt", ["", " "])
def test_15_next_to_nothing(real, prompt):
    check(real, prompt)


@pytest.mark.parametrize(
    ("prompt", "word"), [("Das ist ein Ei", "Ei"), ("The company hired an intermed", " intermed"), ("Je vais au", "au")]
)
def test_18_as_many_tokens_as_it_takes(real, prompt, word):
    details = check(real, prompt)
    assert details.boundary.n_removed >= 1
    assert prompt.encode().endswith(details.boundary.owed)
    longer = [token for token in first_tokens(real, prompt) if token.startswith(details.boundary.owed)]
    assert longer, "some token covers the whole tail"


@pytest.fixture(scope="module")
def foreign(request):
    """A random model over a tokenizer of another family."""
    from transformers import PreTrainedTokenizerFast

    folder = SHARED / "tokenizers" / request.param
    if not folder.is_dir():
        pytest.skip("no such tokenizer here")
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    model = toy_model(max(len(tokenizer), tokenizer.vocab_size))
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    return Generator(model, tokenizer)


@pytest.mark.slow
@pytest.mark.shared
@pytest.mark.parametrize("foreign", ["llama2", "qwen3", "llama3_1", "gptoss"], indirect=True)
@pytest.mark.parametrize("prompt", ["I like", "import ", "A", "café", "x.re"])
def test_02_03_04_16_other_families(foreign, prompt):
    """SentencePiece with pad = EOS, no BOS, no padding token, BOS kept."""
    details = foreign.generate(prompt, max_new_tokens=3, do_sample=False, details=True)
    ids = foreign.tokenizer(prompt).input_ids
    assert list(details.boundary.keep) == ids[: len(details.boundary.keep)], "what is kept is as it was, BOS included"
    vocabulary = foreign.engine.vocabulary
    assert vocabulary.decode_bytes([*details.boundary.keep, *details.token_ids]).endswith(
        prompt.encode() + details.data
    )
