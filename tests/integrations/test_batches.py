"""A row of a batch is what it is alone: every size from 1 to 32, every policy, prompts that give back differently."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from integrations_toy import toy_model

import healfsa
from healfsa.integrations.transformers import Generator

pytestmark = pytest.mark.model
PROMPTS = [
    "The company hired an intermed", "x.re", "das Ei", "def f(x):\n    ret", "a  ", "caf", "I like ", "import ",
    "https:", "don'", '{"name": "', "x = foo_ba", "The house is beau", "Hello", " ", "\n", "r", "1 2 3", "x.re" * 9,
    "Das ist ein Ei",
    "The capital of Fra", "It was a trag", "   indented", "naïv", "A", "print('Hello, wo", "x = [1, 2", "for i in ra",
    "The colour of the sky is b", "Answer: Y", "tab\t", "end.",
]  # fmt: skip
GRAMMARS = [None if k % 3 else healfsa.regex(r"[^\n]{3,40}") for k in range(len(PROMPTS))]


@pytest.fixture(scope="module")
def generator(smollm2):
    tokenizer = smollm2[1]
    return Generator(toy_model(len(tokenizer)), tokenizer)


def check(generator, sizes, **options) -> None:
    """Rows of batches of these sizes are the rows alone: token ids, bytes, reasons; then in another order."""
    options |= {"do_sample": False, "details": True}
    alone = [generator.generate(p, g, **options) for p, g in zip(PROMPTS, GRAMMARS, strict=True)]
    assert len({each.boundary.n_removed for each in alone}) > 2 or options["heal"] not in ("auto", "exact")
    turned = np.random.default_rng(0).permutation(len(PROMPTS)).tolist()
    for size in sizes:
        for order in (range(size), turned[:size]):
            found = generator.generate([PROMPTS[k] for k in order], [GRAMMARS[k] for k in order], **options)
            for k, each in zip(order, found, strict=True):
                assert (each.token_ids, each.data, each.finish_reason) == (
                    alone[k].token_ids, alone[k].data, alone[k].finish_reason,
                ), (size, PROMPTS[k])  # fmt: skip


@pytest.mark.parametrize("heal", ["auto", "exact"])
def test_rows_of_a_batch_are_rows_alone(generator, heal):
    check(generator, (32,), heal=heal, max_new_tokens=3)


@pytest.mark.slow
@pytest.mark.parametrize("heal", ["auto", "exact", "one", 2, "off"])
def test_rows_of_batches_of_every_size_are_rows_alone(generator, heal):
    check(generator, range(1, 33), heal=heal, max_new_tokens=4)


@pytest.mark.slow
@pytest.mark.parametrize("heal", ["auto", "exact"])
def test_rows_of_a_batch_are_rows_alone_on_the_model(smollm2, heal):
    check(Generator(*smollm2), range(1, 33), heal=heal, max_new_tokens=4)
