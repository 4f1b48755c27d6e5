"""Exact healing on a model: the tree in one pass, the cache that stays, and what is drawn."""

from __future__ import annotations

import collections

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from integrations_toy import toy_model

import healfsa
from healfsa.healing import AllowedByIndex, covers, weigh
from healfsa.integrations.transformers import Generator, exact

pytestmark = pytest.mark.model
PROMPTS = ["The company hired an intermed", "x.re", "das Ei", "def f(x):\n    ret", "a  ", "caf"]


@pytest.fixture(scope="module")
def generator(smollm2):
    tokenizer = smollm2[1]
    return Generator(toy_model(len(tokenizer)), tokenizer)


def one_by_one(model, ids, tree) -> np.ndarray:
    """Return the rows of a tree by a plain forward pass for each path."""
    with torch.inference_mode():
        rows = [model(torch.tensor([[*ids, *path]])).logits[0, -1].log_softmax(-1).numpy() for path in tree.paths]
    return np.stack(rows)


@pytest.mark.parametrize("over", ["canonical", "all"])
@pytest.mark.parametrize("prompt", PROMPTS)
def test_the_tree_is_what_each_path_gives_alone(generator, prompt, over, monkeypatch):
    boundary = generator.engine.heal(prompt)
    tree = covers(generator.engine.vocabulary, boundary, over, most=60)
    ids = list(boundary.keep) or [0]
    expected = one_by_one(generator.model, ids, tree)
    rows, cache = exact.log_probabilities(generator.model, ids, tree)
    np.testing.assert_allclose(rows, expected, atol=2e-4)
    assert cache.get_seq_length() == len(ids) + len(tree) - 1
    monkeypatch.setattr(exact, "LONGEST", 0)
    np.testing.assert_allclose(exact.log_probabilities(generator.model, ids, tree)[0], expected, atol=2e-4)
    monkeypatch.setattr(exact, "takes_tree_masks", lambda model: False)
    np.testing.assert_allclose(exact.log_probabilities(generator.model, ids, tree)[0], expected, atol=2e-4)


@pytest.mark.parametrize("prompt", PROMPTS)
def test_the_cache_goes_on_as_if_nothing_had_happened(generator, prompt, monkeypatch):
    """What follows the drawn cover is what a fresh call would write."""
    options = {"heal": "exact", "do_sample": False, "max_new_tokens": 8, "details": True}
    kept = generator.generate(prompt, **options)
    monkeypatch.setattr(exact, "_pruned", lambda *_: None)
    assert generator.generate(prompt, **options) == kept
    spelled = generator.engine.vocabulary.decode_bytes([*kept.boundary.keep, *kept.token_ids])
    assert spelled == prompt.encode() + kept.data


def test_the_likeliest_outcome_is_taken_without_sampling(generator):
    boundary = generator.engine.heal("x.re", "exact")
    matcher = generator.engine.matcher(None, prompt=boundary)
    _, weighed, _ = exact._weigh(generator.model, generator.engine, list(boundary.keep), matcher, None, "canonical")
    details = generator.generate("x.re", heal="exact", do_sample=False, max_new_tokens=6, details=True)
    best = weighed.sample(0, temperature=0.0)[0]
    assert details.token_ids[: len(best.tokens)] == best.tokens


def test_draws_follow_the_models_own_weights(generator):
    """300 draws under a grammar against the weights of the events, within five standard deviations."""
    grammar = generator.engine.compile(healfsa.choice("duce(", "turn(", "place("))
    boundary = generator.engine.heal("x.re", "exact")
    matcher = generator.engine.matcher(grammar, prompt=boundary)
    _, weighed, _ = exact._weigh(generator.model, generator.engine, list(boundary.keep), matcher, grammar, "all")
    chances: dict[bytes, float] = collections.defaultdict(float)
    for event, chance in enumerate(weighed.probabilities):
        chances[weighed._cover(event).text] += float(chance)
    torch.manual_seed(0)
    n = 300
    options = {"do_sample": True, "num_return_sequences": n, "over": "all", "top_k": 0}
    found = generator.generate("x.re", grammar, heal="exact", max_new_tokens=9, details=True, **options)
    assert {each.text for each in found} <= {"duce(", "turn(", "place("}
    vocabulary = generator.engine.vocabulary
    first = collections.Counter(_first_event(vocabulary, each) for each in found)
    for text, chance in chances.items():
        assert abs(first[text] - n * chance) <= 5 * (n * chance * (1 - chance)) ** 0.5 + 1


def _first_event(vocabulary, details) -> bytes:
    """Return what the first token that passes the owed bytes writes behind them."""
    written, owed = b"", details.boundary.owed
    for token_id in details.token_ids:
        written += vocabulary.bytes_of(token_id)
        if len(written) > len(owed):
            break
    return written[len(owed) :]


def test_a_batch_streams_and_stops_like_any_other(generator):
    options = {"heal": "exact", "do_sample": False, "max_new_tokens": 6}
    alone = [generator.generate(prompt, **options) for prompt in PROMPTS]
    assert generator.generate(PROMPTS, **options) == alone
    assert ["".join(generator.stream(prompt, **options)) for prompt in PROMPTS] == alone
    grammar = healfsa.regex("b (ab ){30}")
    assert generator.generate("x a", grammar, heal="exact", stop=" ", do_sample=False) == "b"


def test_a_text_may_end_with_the_first_event(generator):
    found = generator.generate("x.re", healfsa.choice("", "duce("), heal="exact", do_sample=False, details=True)
    assert found.text in ("", "duce(")
    assert found.finish_reason == "eos"
    assert "".join(generator.stream("x.re", healfsa.choice(""), heal="exact", do_sample=False)) == ""


def test_draws_are_repeatable(generator):
    draws = []
    for _ in range(2):
        torch.manual_seed(4)
        draws.append(generator.generate("x.re", heal="exact", do_sample=True, max_new_tokens=4))
    assert draws[0] == draws[1]


@pytest.mark.parametrize("prompt", PROMPTS)
def test_beams_begin_at_the_leaves_with_their_true_weights(generator, prompt):
    """With one beam an event and no text behind it, beam search lists the events by weight."""
    boundary = generator.engine.heal(prompt, "exact")
    tree = covers(generator.engine.vocabulary, boundary)
    texts = ["ab", "ac", "b", "rn", "gh", " x"]
    grammar = generator.engine.compile(healfsa.choice(*texts))
    matcher = generator.engine.matcher(grammar, prompt=boundary)
    ids = list(boundary.keep) or [0]
    rows = one_by_one(generator.model, ids, tree)
    allowed = AllowedByIndex(grammar, matcher.state)
    weighed = weigh(generator.engine.vocabulary, tree, rows, allowed)
    if weighed.weight.size == 0:
        pytest.skip("no canonical cover leads into these texts")
    events = {cover.tokens: cover for cover in weighed.best(40)}
    found = generator.generate(
        prompt, grammar, heal="exact", num_beams=48, num_return_sequences=12, max_new_tokens=6, do_sample=False,
        length_penalty=0.0, details=True,
    )  # fmt: skip
    kept = [each for each in found if each.finish_reason == "eos"]
    assert kept and {each.text for each in kept} <= set(texts)
    begun = set()
    for each in kept:
        starts = [tokens for tokens in events if each.token_ids[: len(tokens)] == tokens]
        assert starts, "a beam left the tree elsewhere than at a leaf"
        begun.add(max(starts, key=len))
    assert len(begun) > 1 or len(events) == 1
    paths = [each.token_ids for each in kept]
    assert len(paths) == len(set(paths)), "one path with two ends is one beam"
    scores = [log_probability(generator, ids, path) for path in paths]
    assert scores == sorted(scores, reverse=True)


def log_probability(generator, ids, tokens) -> float:
    """Return the model's own log-probability of the tokens and the end, nothing renormalised."""
    with torch.inference_mode():
        rows = generator.model(torch.tensor([[*ids, *tokens]])).logits[0, len(ids) - 1 :].log_softmax(-1)
    ends = float(rows[len(tokens), list(generator.engine.vocabulary.eos_ids)].logsumexp(-1))
    return ends + sum(float(rows[k, token]) for k, token in enumerate(tokens))


def test_beams_are_a_batch_and_have_all_their_options(generator):
    options = {"heal": "exact", "num_beams": 3, "do_sample": False, "max_new_tokens": 6}
    alone = [generator.generate(prompt, **options) for prompt in PROMPTS]
    assert generator.generate(PROMPTS, **options) == alone
    sampled = {"heal": "exact", "num_beams": 4, "num_return_sequences": 4, "do_sample": True, "max_new_tokens": 3}
    assert len(generator.generate("x.re", **sampled)) == 4
    over_all = generator.generate("x.re", over="all", **options)
    assert over_all == generator.generate("x.re", **(options | {"heal": "auto"}))


def test_beams_where_no_cover_is_canonical_take_all(generator):
    """The grammar allows only what the tokenizer would never write this way: the masks alone decide then."""
    found = generator.generate("x.re", healfsa.choice("\x01\x02"), heal="exact", num_beams=2, do_sample=False)
    assert found == "\x01\x02"


def test_on_the_real_model(smollm2):
    """Local masks give Yeah and Yep a third of the weight; the model itself gives them three in a hundred."""
    real = Generator(*smollm2)
    grammar = real.engine.compile(healfsa.choice("es", "eah", "ep"))
    boundary = real.engine.heal("Answer: Y", "exact")
    matcher = real.engine.matcher(grammar, prompt=boundary)
    _, weighed, _ = exact._weigh(*smollm2[:1], real.engine, list(boundary.keep), matcher, grammar, "canonical")
    chances = {weighed._cover(event).text: float(chance) for event, chance in enumerate(weighed.probabilities)}
    assert chances[b"es"] > 0.9
    text = real.generate("The company hired an intermed", heal="exact", max_new_tokens=4, do_sample=False)
    assert text.startswith("iar") or text.startswith("iate")
