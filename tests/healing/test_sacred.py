"""The prompt is sacred: kept ids and generated tokens always begin with the prompt's bytes, and nothing raises.

Cases are prompts of every kind (text, bytes that may end inside a character, ids that are canonical and that are not,
with special tokens and spellings of them, empty, of one token, of white space) under every policy, with and without a
grammar; each goes on with random tokens that the masks allow. ``make test-slow`` runs more than 100,000 of them over
the real tokenizers (those in HEALFSA_SHARED), and 40,000 over tokenizers that are trained here.
"""

from __future__ import annotations

import random

import numpy as np
import pytest
from healing.kit import NAMES, odd_text, plain_text, shared, vocabulary

import healfsa
from healfsa.healing import TextStream
from healfsa.healing.prompt import text_tail
from healfsa.vocab import Vocabulary

POLICIES = ("off", "one", 1, 2, 3, 7, "auto", "auto", "auto", "exact")
ODD = (
    "",
    " ",
    "\n",
    "  ",
    "\t\n",
    "a",
    "A",
    "1",
    "'",
    "é",
    "\u0301",
    "🎉",
    "日",
    "\x00",
    "\u2581",
    "<",
    "<|",
    "don'",
    "\r\n\r\n",
)
GRAMMARS = (r"[a-z ]{0,9}", r"(?s:.*)", r'"[^"\n]{0,20}"\}?', r"\d+(\.\d*)?|true", r"[^\x00]{2,4}\n")
CASES = 11_200


def random_prompt(pick: random.Random, known: Vocabulary, able: frozenset[int]):
    """Return a prompt, options for it, and its bytes as the vocabulary spells them (None: the ids say it)."""
    text = pick.choice(ODD) if pick.random() < 0.15 else odd_text(pick, 12) if pick.random() < 0.6 else plain_text(pick)
    if pick.random() < 0.1:
        text += pick.choice(sorted(known.specials) or ["x"]) + pick.choice(("", "x", " Hel", "\n"))
    raw = text.encode()
    while not able.issuperset(raw):
        text = "".join(c for c in text if able.issuperset(c.encode()))
        raw = text.encode()
    kind = pick.random()
    if kind < 0.45:
        parse = pick.random() < 0.3
        return text, {"parse_special": parse}, None if parse else known.normalize(text).encode()
    if kind < 0.65:
        return raw[: pick.randrange(len(raw) + 1)], {}, None
    if kind < 0.85:
        return known.encode(text, add_special_tokens=pick.random() < 0.5, parse_special=pick.random() < 0.5), {}, None
    return [pick.randrange(known.size) for _ in range(pick.randrange(8))], {}, None


def check(engine: healfsa.Engine, indexes: list, pick: random.Random, able: frozenset[int], cases: int) -> int:
    """Run cases; return how many bytes were owed in all of them together."""
    known, owed = engine.vocabulary, 0
    holes = [int(i) for i in np.flatnonzero(np.asarray(known.kinds) == 0)[:4]]
    for _ in range(cases):
        prompt, options, spelled = random_prompt(pick, known, able)
        if isinstance(prompt, list) and set(prompt) & set(holes):
            continue
        policy = pick.choice(POLICIES)
        healed = engine.heal(prompt, policy, **options)
        whole = known.decode_bytes(healed.keep) + healed.owed
        if spelled is not None:
            assert whole == spelled, (prompt, policy)
        elif isinstance(prompt, bytes):
            rest = text_tail(prompt[-4:])[1]
            head = prompt[: len(prompt) - len(rest)].decode()
            assert whole.endswith(prompt) or whole == known.normalize(head).encode() + rest, (prompt, policy)
        elif isinstance(prompt, list):
            assert whole == known.decode_bytes(prompt), (prompt, policy)
        assert [i for i in healed.keep if known.bytes_of(i) is None] == [
            i for i in healed.prompt_ids if known.bytes_of(i) is None
        ], "a special token was given back"
        index = pick.choice(indexes) if pick.random() < 0.4 else None
        matcher = engine.matcher(index, prompt=healed)
        goes_on(known, matcher, healed, whole, pick)
        owed += len(healed.owed)
    return owed


def goes_on(known: Vocabulary, matcher, healed, whole: bytes, pick: random.Random) -> None:
    """Write random tokens that the masks allow: they spell what is owed first, and the stream shows only the rest."""
    stream, written, shown = TextStream.behind(known, healed), b"", ""
    for step in range(2 * len(healed.owed) + 3):
        if step > 2 and not matcher.owed:
            break
        row = matcher.allowed_row().view(np.uint32)
        words = np.flatnonzero(row)
        assert words.size or (matcher.is_accepting and not known.eos_ids), (whole, matcher)
        if not words.size:
            break
        word = int(pick.choice(words))
        bit = pick.choice([b for b in range(32) if int(row[word]) >> b & 1])
        token = 32 * word + bit
        assert matcher.validate_tokens([token]) == 1
        matcher.accept_token(token)
        if matcher.is_terminated:
            break
        data = known.bytes_of(token)
        assert data is not None or not matcher.owed
        written += data or b""
        shown += stream.push(data)
    kept = known.decode_bytes(healed.keep)
    assert (kept + written).startswith(whole) or whole.startswith(kept + written), (whole, written)
    assert len(kept + written) >= len(whole) or matcher.owed, (whole, written)
    if len(kept + written) >= len(whole):
        shown += stream.finish()
        unfinished = len(kept + written) - len(whole)
        assert len(shown.encode()) + len(stream.left) >= 0 and shown in (kept + written).decode(errors="replace")
        assert unfinished or shown in ("", "\ufffd") or not shown.isascii()


def run(known: Vocabulary, seed: int, cases: int) -> None:
    engine = healfsa.Engine(known)
    indexes = []
    for pattern in GRAMMARS:
        try:
            indexes.append(engine.compile(healfsa.regex(pattern)))
        except healfsa.HealFSAError:
            continue
    inside = frozenset(known.data.tobytes())
    able = frozenset(known.spellable) if len(known.spellable) < 256 else frozenset(range(256))
    assert able <= inside and check(engine, indexes, random.Random(seed), able, cases) > cases // 3


@pytest.mark.parametrize("name", NAMES)
def test_the_prompt_is_sacred(name):
    run(vocabulary(name), 1, 80)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_prompt_is_sacred_many(name):
    run(vocabulary(name), 2, 5_000)


@pytest.mark.slow
@pytest.mark.shared
@pytest.mark.parametrize("folder", shared(), ids=lambda folder: folder.name)
def test_the_prompt_is_sacred_for_real_tokenizers(folder):
    run(Vocabulary.from_tokenizer(folder), 3, CASES)
