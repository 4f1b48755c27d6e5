"""Forced text as tokens: never another token than the tokenizer's own, whatever follows; and as much as is certain.

A model that writes canonical tokens writes the appended ones with probability one, so generation with them is equal in
distribution to generation without them. That is what is tested: along the canonical tokens of every text of a grammar,
at every place, the forced tokens are the ones that come next.
"""

from __future__ import annotations

import random
import re

import pytest
from healing.kit import CORPUS, NAMES, odd_text, plain_text, vocabulary

import healfsa


def along(engine, grammar, prompt: str, texts: list[str]):
    """Yield (matcher, the canonical tokens that are left) at every place of every text behind the prompt."""
    known = engine.vocabulary
    healed = engine.heal(prompt)
    for text in texts:
        whole = known.encode(prompt + text, add_special_tokens=True)
        assert tuple(whole[: len(healed.keep)]) == healed.keep
        matcher = engine.matcher(grammar, prompt=healed)
        rest = whole[len(healed.keep) :]
        for at in range(len(rest) + 1):
            yield matcher, rest[at:]
            if at < len(rest):
                matcher.accept_token(rest[at])


@pytest.mark.parametrize("name", NAMES)
def test_forced_tokens_are_what_the_tokenizer_writes(name):
    engine, pick, forced = healfsa.Engine(vocabulary(name)), random.Random(5), 0
    for number in range(12):
        make = odd_text if number % 3 == 0 else plain_text
        common, prompt = make(pick), plain_text(pick)
        texts = [common + make(pick)[:8] for _ in range(3)] + ([common] if number % 2 else [])
        texts = [text for text in texts if engine.vocabulary.normalize(prompt + text).endswith(text)]
        if not texts:
            continue
        grammar = engine.compile(healfsa.choice(*texts))
        for matcher, rest in along(engine, grammar, prompt, texts):
            found = matcher.forced_tokens()
            assert found == rest[: len(found)], (prompt, texts)
            assert matcher.validate_tokens(found) == len(found)
            forced += len(found)
    assert forced > 100


@pytest.mark.parametrize("name", ["gpt2", "cl100k", "marked"])
def test_nothing_is_held_back_that_is_certain(name):
    """What is appended is as long as all canonical continuations agree: checked against many of them."""
    engine, pick = healfsa.Engine(vocabulary(name)), random.Random(6)
    known, text, seen, all_of_it = engine.vocabulary, "".join(CORPUS), 0, 0
    tails = ["", "ing", "\n\n", " the", "  ", *dict.fromkeys(text), *(text[at : at + 5] for at in range(len(text) - 5))]
    for _ in range(14):
        start = pick.randrange(len(text) - 30)
        common = text[start : start + pick.randrange(4, 25)]
        grammar = engine.compile(healfsa.regex(re.escape(common) + "(?s:.*)"))
        found = engine.matcher(grammar, prompt=engine.heal("x", "off")).forced_tokens()
        ways = [known.encode("x" + common + tail) for tail in dict.fromkeys(tails)]
        shared = next(k for k in range(99) if len({tuple(way[: k + 1]) for way in ways}) > 1)
        kept = len(known.encode("x"))
        if shared >= kept and ways[0][:kept] == known.encode("x"):
            assert found == ways[0][kept : kept + len(found)]
            seen, all_of_it = seen + 1, all_of_it + (len(found) == shared - kept)
    assert seen > 7 and all_of_it >= 0.8 * seen  # (these continuations are not all that there are)


def test_a_text_that_ends_is_appended_whole():
    engine = healfsa.Engine(vocabulary("cl100k"))
    for prompt in ("", "x = ", "JSON:"):
        text = '{"name": "Bob", "age": 42}'
        matcher = engine.matcher(healfsa.choice(text), prompt=engine.heal(prompt))
        whole = engine.vocabulary.encode(prompt + text)
        assert [*matcher.prompt.keep, *matcher.forced_tokens()] == whole


def test_forced_tokens_know_what_stands_before():
    """Encoded by itself, the forced text begins with a token that the tokenizer would not write behind the prompt."""
    known = vocabulary("gpt2")
    engine, pick, differing = healfsa.Engine(known), random.Random(7), 0
    for _ in range(60):
        whole = plain_text(pick)
        cut = pick.randrange(1, len(whole))
        matcher = engine.matcher(healfsa.choice(whole[cut:]), prompt=engine.heal(whole[:cut]))
        ids = known.encode(whole)
        assert [*matcher.prompt.keep, *matcher.forced_tokens()] == ids
        differing += [*known.encode(whole[:cut]), *known.encode(whole[cut:])] != ids
    assert differing > 10


def test_nothing_is_appended_behind_what_the_tokenizer_would_not_write():
    known = vocabulary("gpt2")
    engine = healfsa.Engine(known)
    word = next(known.bytes_of(t).decode() for t in map(int, known.trie.order) if (known.bytes_of(t) or b"").isalpha()
                and len(known.bytes_of(t)) > 4)  # fmt: skip
    matcher = engine.matcher(healfsa.choice(word + " x"))
    assert matcher.forced_tokens() == known.encode(word + " x")
    matcher.accept_token(known.encode(word[0])[0])
    assert matcher.forced_tokens() == [] and matcher.forced_bytes() == (word[1:] + " x").encode()


def test_rollback_forks_and_bytes():
    known = vocabulary("cl100k")
    engine = healfsa.Engine(known)
    text = "def f(x):\n    return x * 2 + 10"
    matcher = engine.matcher(healfsa.choice(text))
    ids = known.encode(text)
    assert matcher.forced_tokens() == ids
    matcher.accept_tokens(ids[:3])
    twin = matcher.fork()
    matcher.rollback(2)
    assert matcher.forced_tokens() == ids[1:] and twin.forced_tokens() == ids[3:]
    twin.accept_tokens(ids[3:5])
    matcher.accept_tokens(ids[1:2])
    assert matcher.last_ids() == tuple(ids[:2]) and twin.last_ids() == tuple(ids[:5])
    assert matcher.forced_tokens() == ids[2:] and twin.forced_tokens() == ids[5:]
    matcher.reset()
    matcher.accept_bytes(b"def f")
    assert matcher.last_ids() is None and matcher.forced_tokens() == []
    matcher.rollback()
    assert matcher.forced_tokens() == ids
    assert engine.matcher(None).forced_tokens() == [] and engine.matcher(None).last_ids() == ()
