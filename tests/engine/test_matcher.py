"""Matchers: tokens in, verdicts out; errors leave them as they were; forks, rollback and reset."""

from __future__ import annotations

import copy
import random
import re

import numpy as np
import pytest
import vocabularies

import healfsa
from healfsa.errors import (
    MaskShapeError,
    PromptError,
    RollbackTooFar,
    Terminated,
    TokenRejected,
    VocabularyError,
)

PATTERNS = [r'\{"a": (\d+|"[a-z]*")\}', r"(ab|ba)*0?", r"[a-z]{2,40}( [a-z]+)*", r"(foo|bar)+\d{1,3}", r".{0,12}"]


@pytest.fixture(scope="module")
def engine():
    return healfsa.Engine(vocabularies.byte_level())


def allowed(matcher) -> list[int]:
    bitmask = healfsa.allocate_bitmask(1, matcher.index.vocabulary.size)
    matcher.fill_bitmask(bitmask, 0)
    return np.flatnonzero(np.unpackbits(bitmask[0].view(np.uint8), bitorder="little")).tolist()


def walk(matcher, random_: random.Random, steps: int) -> list[int]:
    taken = []
    for _ in range(steps):
        if matcher.is_terminated:
            break
        taken.append(random_.choice(allowed(matcher)))
        matcher.accept_token(taken[-1])
    return taken


@pytest.mark.parametrize("name", vocabularies.ALL)
def test_what_is_written_is_accepted_and_never_a_dead_end(name):
    vocabulary = vocabularies.ALL[name]()
    engine, random_, ended = healfsa.Engine(vocabulary), random.Random(3), 0
    for pattern in PATTERNS:
        try:
            index = engine.compile(healfsa.regex(pattern))
        except VocabularyError:
            continue
        for _ in range(10):
            matcher = engine.matcher(index)
            taken = walk(matcher, random_, 30)
            assert allowed(matcher)
            if matcher.is_terminated:
                ended += 1
                assert re.fullmatch(pattern, vocabulary.decode_bytes(taken).decode())
                assert allowed(matcher) == sorted(vocabulary.eos_ids)
    assert ended > 5


def test_masks_and_verdicts_agree(engine):
    random_ = random.Random(1)
    for pattern in PATTERNS:
        matcher = engine.matcher(engine.compile(healfsa.regex(pattern)))
        for _ in range(12):
            may = set(allowed(matcher))
            for token in random_.sample(range(engine.vocabulary.size), 25):
                assert matcher.validate_tokens([token]) == (token in may)
                if token not in may:
                    before = matcher.state, matcher.owed, matcher.n_accepted
                    with pytest.raises(TokenRejected) as caught:
                        matcher.accept_token(token)
                    assert caught.value.token_id == token
                    assert (matcher.state, matcher.owed, matcher.n_accepted) == before
            if matcher.is_terminated or not may:
                break
            matcher.accept_token(random_.choice(sorted(may)))
            if matcher.is_terminated:
                break


def test_the_end(engine):
    matcher = engine.matcher(healfsa.regex("a|ab"))
    end = engine.vocabulary.eos_ids[0]
    assert not matcher.is_accepting
    with pytest.raises(TokenRejected):
        matcher.accept_token(end)
    matcher.accept_token(engine.vocabulary.encode("a")[0])
    assert matcher.is_accepting and not matcher.is_terminated
    assert matcher.validate_tokens([end, end]) == 1
    matcher.accept_token(end)
    assert matcher.is_accepting and matcher.is_terminated and allowed(matcher) == [end]
    for call in (lambda: matcher.accept_token(end), lambda: matcher.accept_bytes(b"b")):
        with pytest.raises(Terminated):
            call()
    assert matcher.n_accepted == 2 and matcher.validate_tokens([end]) == 0
    matcher.rollback(1)
    assert not matcher.is_terminated and len(allowed(matcher)) == 2


def test_rollback_fork_and_reset_are_functions_of_the_history(engine):
    random_ = random.Random(2)
    index = engine.compile(healfsa.regex(PATTERNS[2]))
    for _ in range(20):
        matcher = engine.matcher(index)
        taken = walk(matcher, random_, 15)
        rows = {}
        replay = engine.matcher(index)
        for n, token in enumerate(taken):
            rows[n] = allowed(replay)
            replay.accept_token(token)
        for _ in range(10):
            back = random_.randint(0, matcher.n_accepted)
            matcher.rollback(back)
            assert matcher.n_accepted == len(taken) - back
            twin = matcher.fork()
            other = walk(twin, random_, 4)
            assert allowed(matcher) == rows.get(len(taken) - back, allowed(matcher))
            matcher.accept_tokens(taken[len(taken) - back :])
            twin.rollback(len(other))
            twin.accept_tokens(taken[len(taken) - back :])
            assert (twin.state, twin.n_accepted) == (matcher.state, matcher.n_accepted)
        matcher.reset()
        assert matcher.n_accepted == 0 and allowed(matcher) == rows[0]


def test_forks_do_not_touch_each_other(engine):
    a, b, c = (engine.vocabulary.encode(x)[0] for x in "abc")
    first = engine.matcher(healfsa.regex("[abc]*"))
    first.accept_tokens([a, b])
    second = first.fork()
    third = second.fork()
    first.accept_token(c)
    second.accept_token(a)
    third.rollback(1)
    third.accept_token(c)
    assert [m.n_accepted for m in (first, second, third)] == [3, 3, 2]
    assert first.rollback(3) is None and second.rollback(3) is None and third.rollback(2) is None
    assert copy.copy(first).n_accepted == 0


def test_rolling_back_too_far(engine):
    matcher = engine.matcher(healfsa.regex("a*"))
    matcher.accept_token(engine.vocabulary.encode("a")[0])
    for n in (2, -1):
        with pytest.raises(RollbackTooFar) as caught:
            matcher.rollback(n)
        assert (caught.value.asked, caught.value.kept) == (n, 1)
    assert matcher.n_accepted == 1


def test_several_tokens_or_none(engine):
    matcher = engine.matcher(healfsa.regex("abc"))
    a, b = engine.vocabulary.encode("a")[0], engine.vocabulary.encode("b")[0]
    with pytest.raises(TokenRejected):
        matcher.accept_tokens([a, b, a])
    assert matcher.n_accepted == 0
    matcher.accept_tokens([a, b])
    assert matcher.n_accepted == 2


@pytest.mark.parametrize("token", [-1, 10**6, 2**40])
def test_ids_that_do_not_exist(engine, token):
    a = engine.vocabulary.encode("a")[0]
    matcher = engine.matcher(healfsa.regex("a*"))
    for call in (matcher.accept_token, lambda t: matcher.accept_tokens([a, t])):
        with pytest.raises(VocabularyError, match=str(token)):
            call(token)
    assert matcher.n_accepted == 0
    assert matcher.validate_tokens([a, token, a]) == 1
    assert matcher.fill_draft([a, token, a], engine.allocate_bitmask(4)) == [0]


def test_holes_are_rejected(engine):
    hole = int(np.flatnonzero(np.asarray(engine.vocabulary.kinds) == 0)[0])
    for grammar in (healfsa.regex("(?s).*"), None):
        with pytest.raises(TokenRejected) as caught:
            engine.matcher(grammar).accept_token(hole)
        assert caught.value.bytes is None


def test_a_rejection_says_what_was_possible(engine):
    matcher = engine.matcher(healfsa.regex("[a-c]|x"))
    with pytest.raises(TokenRejected, match="'a' to 'c', 'x'"):
        matcher.accept_token(engine.vocabulary.encode("z")[0])


def test_bytes_without_tokens(engine):
    matcher = engine.matcher(healfsa.regex("foo(bar)?"))
    matcher.accept_bytes(b"fo")
    with pytest.raises(TokenRejected) as caught:
        matcher.accept_bytes(b"x")
    assert caught.value.bytes == b"x"
    matcher.accept_bytes(b"o")
    assert matcher.is_accepting and matcher.n_accepted == 2
    matcher.rollback(2)
    assert not matcher.is_accepting


BAD = {
    "dtype": np.zeros((2, 20), dtype=np.int64),
    "width": np.zeros((2, 3), dtype=np.int32),
    "flat": np.zeros(20, dtype=np.int32),
    "list": [[0]],
}


@pytest.mark.parametrize("name", [*BAD, "row", "negative", "frozen"])
def test_bitmasks_that_do_not_fit(engine, name):
    matcher = engine.matcher(healfsa.regex("a*"))
    good = engine.allocate_bitmask(2)
    row = {"row": 2, "negative": -1}.get(name, 0)
    if name == "frozen":
        good.flags.writeable = False
    with pytest.raises(MaskShapeError):
        matcher.fill_bitmask(BAD.get(name, good), row)
    assert (good == -1).all()


def test_torch_bitmasks_and_strided_rows(engine):
    torch = pytest.importorskip("torch")
    matcher = engine.matcher(healfsa.regex("[a-f]+"))
    plain = engine.allocate_bitmask(1)
    matcher.fill_bitmask(plain, 0)
    tensor = torch.zeros((3, plain.shape[1]), dtype=torch.int32)
    matcher.fill_bitmask(tensor, 1)
    assert tensor[1].tolist() == plain[0].tolist() and not tensor[0].any()
    wide = np.zeros((4, 2 * plain.shape[1]), dtype=np.int32)
    matcher.fill_bitmask(wide[:, ::2], 3)
    assert (wide[3, ::2] == plain[0]).all() and not wide[:, 1::2].any()


def test_forced_bytes_and_tokens(engine):
    vocabulary = engine.vocabulary
    matcher = engine.matcher(healfsa.regex(r'\{"name": "[a-z]+", "age": \d+\}'))
    assert matcher.forced_bytes() == b'{"name": "'
    tokens = matcher.forced_tokens()
    assert b'{"name": "'.startswith(vocabulary.decode_bytes(tokens))
    matcher.accept_tokens(tokens)
    done = engine.matcher(healfsa.regex("the company"))
    assert vocabulary.decode_bytes(done.forced_tokens()) == b"the company"
    assert engine.matcher(healfsa.regex("[ab]")).forced_tokens() == []
    assert engine.matcher(None).forced_bytes() == b""


def test_healed_prompts_go_on_inside_the_grammar(engine):
    vocabulary = engine.vocabulary
    healed = engine.heal('Answer: {"name": "B', "auto", prefill='{"name": "B')
    matcher = engine.matcher(healfsa.regex(r'\{"name": "[A-Za-z]+"\}'), prompt=healed)
    assert matcher.owed == healed.owed
    written = b""
    while not matcher.is_accepting:
        token = max(allowed(matcher), key=lambda t: len(vocabulary.bytes_of(t) or b""))
        written += vocabulary.bytes_of(token)
        matcher.accept_token(token)
        if len(written) > 400:
            break
    prefix = vocabulary.decode_bytes(healed.input_ids)
    assert (prefix + written).startswith(b'Answer: {"name": "B')


def test_a_prefill_that_contradicts_the_grammar(engine):
    healed = engine.heal("x 12a", "off", prefill="12a")
    with pytest.raises(PromptError, match="byte 2") as caught:
        engine.matcher(healfsa.regex(r"\d+-\d+"), prompt=healed)
    assert caught.value.offset == 2 and "'-'" in str(caught.value)


def test_owed_bytes_are_written_first(engine):
    vocabulary = engine.vocabulary
    healed = engine.heal("x fo", 1)
    assert healed.owed
    matcher = engine.matcher(None, prompt=healed)
    for token in allowed(matcher):
        data = vocabulary.bytes_of(token)
        assert data.startswith(healed.owed) or healed.owed.startswith(data)
    with pytest.raises(TokenRejected, match="written first"):
        matcher.accept_token(vocabulary.eos_ids[0])
    matcher.accept_bytes(healed.owed)
    assert len(allowed(matcher)) == int((np.asarray(vocabulary.kinds) != 0).sum())


def test_owed_bytes_that_nothing_can_write():
    engine = healfsa.Engine(vocabularies.toy())
    from healfsa.healing import Boundary

    with pytest.raises(PromptError) as caught:
        engine.matcher(healfsa.regex("a*"), prompt=Boundary((), b"xyz"))
    assert caught.value.owed == b"xyz"


def test_nothing_can_finish_the_text_behind_this_prefill():
    engine = healfsa.Engine(vocabularies.inner())  # c only inside abc, ca, bcb, c0
    from healfsa.healing import Boundary

    with pytest.raises(PromptError, match="no sequence of tokens"):
        engine.matcher(healfsa.regex("abc"), prompt=Boundary((), prefill=b"ab"))


def bits(row: np.ndarray) -> list[int]:
    return np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist()


def test_masks_of_a_draft(engine):
    a, b, x = (engine.vocabulary.encode(c)[0] for c in "abx")
    end = engine.vocabulary.eos_ids[0]
    matcher = engine.matcher(healfsa.regex("(ab)*"))
    bitmask = np.full_like(engine.allocate_bitmask(8), 7)
    tokens = [a, b, end, a, x, a]
    assert matcher.fill_draft(tokens, bitmask, row=1) == [0, 1, 2]
    assert matcher.n_accepted == 0 and (bitmask[0] == 7).all()
    for k in range(4):
        assert bits(bitmask[1 + k]) == allowed(matcher)
        if k < 3:
            matcher.accept_token(tokens[k])
    assert not bitmask[5:].any()
    with pytest.raises(MaskShapeError):
        matcher.fill_draft(tokens, bitmask, row=2)


def test_masks_of_a_draft_tree(engine):
    a, b, c = (engine.vocabulary.encode(x)[0] for x in "abc")
    matcher = engine.matcher(healfsa.regex("a(b|c)a|b[bc]*"))
    tokens, parents = [a, b, b, c, b, a], [-1, -1, 0, 0, 1, 3]
    bitmask = engine.allocate_bitmask(7)
    assert matcher.fill_draft(tokens, bitmask, parents=parents) == [0, 1, 2, 3, 4, 5]
    for k, path in enumerate([[], [a], [b], [a, b], [a, c], [b, b], [a, c, a]]):
        twin = matcher.fork()
        twin.accept_tokens(path)
        assert bits(bitmask[k]) == allowed(twin)
