"""Exact healing against complete enumeration on toy vocabularies and Markov models."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from healing.toys import NAMES, Markov, by_byte, by_text, distance, events, toy

from healfsa import PromptError
from healfsa.healing import AllowedByText, Boundary, ByteReader, covers, exact, heal, logprob, search_all, weigh

PROMPTS = {
    "overlap": ["a", "ab", "aba", "bab", "abab", "bba", "abb", "aab"],
    "runs": ["a", "aa", "aaa", "aaaa", "baaaaa", "aab", "ba"],
    "words": ["a", "a ", "ab a", "a  ", "ab  ", "b a", " ", "a b"],
    "white": ["a", "a ", "a  ", "aa   ", "  ", "aa a", "a    "],
    "whole": ["a", "ab", "abb", "aabb", "abbb", "b", "bab"],
}
CASES = [(name, prompt) for name in NAMES for prompt in PROMPTS[name]]


@pytest.fixture(params=CASES, ids=lambda case: f"{case[0]}-{case[1]!r}")
def case(request):
    name, prompt = request.param
    known = toy(name)
    healed = heal(known, prompt)
    return known, healed, Markov(known, healed.keep, seed=sum(prompt.encode()))


@pytest.mark.parametrize("over", ["canonical", "all"])
def test_next_byte_equals_enumeration(case, over):
    known, healed, model = case
    found = exact(known, healed, model, over=over)
    assert model.calls == 1
    truth = list(events(known, model, healed.owed, over == "canonical"))
    assert distance(found.next_bytes(), by_byte(truth)) < 1e-9
    assert found.log_total == pytest.approx(np.log(sum(chance for _, _, chance in truth)), abs=1e-9)


@pytest.mark.parametrize("over", ["canonical", "all"])
def test_events_are_those_of_the_enumeration(case, over):
    known, healed, model = case
    found = exact(known, healed, model, over=over)
    paths = found.tree.paths
    mine = {(*paths[n], int(t)): w for n, t, w in zip(found.node, found.token, np.exp(found.weight), strict=True)}
    truth = {tokens: chance for tokens, _, chance in events(known, model, healed.owed, over == "canonical")}
    assert mine.keys() == truth.keys()
    assert all(mine[tokens] == pytest.approx(truth[tokens]) for tokens in truth)


@pytest.mark.parametrize("over", ["canonical", "all"])
@pytest.mark.parametrize("pattern", ["b+a?", "(a|bb| a)*", "[ab]{2}", " *a"])
def test_with_a_grammar(case, over, pattern):
    known, healed, model = case
    texts = ["".join(t).encode() for n in range(7) for t in itertools.product("ab ", repeat=n)]
    language = [text for text in texts if re.fullmatch(pattern, text.decode())]
    lives = lambda text: any(one.startswith(text) for one in language)  # noqa: E731
    ends = b"" in language
    allowed = AllowedByText(known, lives, ends)
    truth = [
        event for event in events(known, model, healed.owed, over == "canonical")
        if (ends if event[1] is None else lives(event[1]))
    ]  # fmt: skip
    found = exact(known, healed, model, over=over, allowed=allowed)
    if not truth:
        with pytest.raises(PromptError):
            found.sample(0)
        return
    assert distance(found.next_bytes(), by_byte(truth)) < 1e-9
    assert found.sample(0)[0].text in {text or b"" for _, text, _ in truth}


@pytest.mark.parametrize("over", ["canonical", "all"])
@pytest.mark.parametrize(("name", "prompt"), [("overlap", "abab"), ("words", "ab  "), ("runs", "aaaa")])
def test_samples_have_the_exact_distribution(name, prompt, over):
    known = toy(name)
    healed = heal(known, prompt)
    model = Markov(known, healed.keep, seed=1)
    found = exact(known, healed, model, over=over)
    count = 20_000
    truth = {tokens: chance for tokens, _, chance in events(known, model, healed.owed, over == "canonical")}
    total = sum(truth.values())
    seen: dict[tuple[int, ...], int] = {}
    for cover in found.sample(7, count=count):
        seen[cover.tokens] = seen.get(cover.tokens, 0) + 1
    assert seen.keys() <= truth.keys()
    chances = np.array([chance / total for chance in truth.values()])
    counts = np.array([seen.get(tokens, 0) for tokens in truth])
    sigma = np.sqrt(count * chances * (1 - chances)) + 1e-9
    beyond = np.abs(counts - count * chances) > 3 * sigma
    assert beyond.sum() <= max(1, 0.02 * len(truth))
    assert ((counts - count * chances) ** 2 / (count * chances)).sum() < len(truth) + 5 * np.sqrt(2 * len(truth))


@pytest.mark.parametrize("parameters", [dict(temperature=0.5), dict(temperature=2.0), dict(top_k=3), dict(top_p=0.6),
                                        dict(temperature=0.7, top_k=4, top_p=0.8)])  # fmt: skip
def test_sampling_parameters_act_once_and_on_texts(parameters):
    known = toy("overlap")
    healed = heal(known, "abab")
    model = Markov(known, healed.keep, seed=3)
    found = exact(known, healed, model, over="all")
    chances = by_text(events(known, model, healed.owed, False))
    order = sorted(chances, key=lambda text: -chances[text])
    shaped = {text: chances[text] ** (1 / parameters.get("temperature", 1.0)) for text in order}
    order = order[: parameters.get("top_k") or len(order)]
    kept, running, whole = [], 0.0, sum(shaped[text] for text in order)
    for text in order:
        if running >= parameters.get("top_p", 1.0) * whole - 1e-12:
            break
        kept.append(text)
        running += shaped[text]
    truth = {text: shaped[text] / running for text in kept}
    count, seen = 20_000, {}
    for cover in found.sample(11, count=count, **parameters):
        text = None if known.kinds[cover.tokens[-1]] == 2 else cover.text
        seen[text] = seen.get(text, 0) + 1
    assert seen.keys() <= truth.keys()
    for text, chance in truth.items():
        assert abs(seen.get(text, 0) - count * chance) <= 4 * np.sqrt(count * chance * (1 - chance)) + 1e-9


def test_seeds_reproduce_and_samples_differ():
    known = toy("overlap")
    healed = heal(known, "abab")
    found = exact(known, healed, Markov(known, healed.keep, seed=3))
    first = found.sample(5, count=50)
    assert first == found.sample(5, count=50) and len({cover.tokens for cover in first}) > 3
    assert len(set(found.sample(5, temperature=0, count=5))) == 1


def test_the_best_covers_come_first():
    known = toy("overlap")
    healed = heal(known, "abab")
    found = exact(known, healed, Markov(known, healed.keep, seed=3))
    best = found.best(4)
    assert [cover.logprob for cover in best] == sorted((cover.logprob for cover in best), reverse=True)
    assert len({cover.tokens for cover in best}) == 4
    assert best[0].logprob == pytest.approx(np.log(found.probabilities.max()))


@pytest.mark.parametrize("wrong", [dict(temperature=-1), dict(top_k=-1), dict(top_p=0), dict(top_p=1.5)])
def test_wrong_sampling_parameters(wrong):
    known = toy("overlap")
    healed = heal(known, "ab")
    with pytest.raises(PromptError):
        exact(known, healed, Markov(known, healed.keep, seed=3)).sample(0, **wrong)


def test_a_search_that_drops_nothing_is_the_whole_tree(case):
    known, healed, model = case
    tree, rows, lost = search_all(known, healed, model, share=0, most=10_000)
    assert lost == -np.inf and tree.cut == 0
    found, whole = weigh(known, tree, rows), exact(known, healed, model, over="all")
    assert distance(found.next_bytes(), whole.next_bytes()) < 1e-12


def test_what_a_search_drops_is_bounded():
    known = toy("runs")
    healed = heal(known, "b" + "a" * 12)
    healed = Boundary((), b"b" + b"a" * 12) if not healed.owed else healed
    model = Markov(known, healed.keep, seed=9)
    tree, rows, lost = search_all(known, healed, model, share=1e-3)
    whole = exact(known, healed, model, over="all")
    part = weigh(known, tree, rows)
    assert tree.cut > 0 and len(tree) < len(whole.tree)
    assert 1 - np.exp(part.log_total - whole.log_total) <= np.exp(lost) + 1e-12


@pytest.mark.parametrize("over", ["canonical", "all"])
def test_logprob_of_texts(over):
    known = toy("overlap")
    healed = heal(known, "ab")
    model = Markov(known, healed.keep, seed=2)

    def begins(owed):
        return sum(chance for _, _, chance in _covering(known, model, owed, over == "canonical"))

    for text in ("a", "b", "aba", "abba", "bbab"):
        truth = np.log(begins(healed.owed + text.encode())) - np.log(begins(healed.owed))
        assert logprob(known, model, healed, text, over=over, share=0) == pytest.approx(truth, abs=1e-9)


def _covering(known, model, owed, canonical):
    """Events, and the paths that end exactly with the owed bytes instead of what follows those."""
    from healing.toys import _is_canonical

    seen = set()
    for tokens, text, chance in events(known, model, owed, canonical):
        path, written = tokens[:-1], known.decode_bytes(tokens[:-1])
        if written == owed:
            if path not in seen and owed:
                seen.add(path)
                rows = [model.row(path[:n])[path[n]] for n in range(len(path))]
                yield path, b"", float(np.exp(sum(rows)))
        else:
            yield tokens, text, chance
    assert _is_canonical is not None


@pytest.mark.parametrize("over", ["canonical", "all"])
@pytest.mark.parametrize("name", ["overlap", "words", "white"])
def test_byte_by_byte(name, over):
    known = toy(name)
    prompt = PROMPTS[name][3]
    healed = heal(known, prompt)
    model = Markov(known, healed.keep, seed=4)
    reader = ByteReader(known, model, healed, over=over)
    for byte in b"ab a" if name != "overlap" else b"abba":
        truth = by_byte(events(known, model, healed.owed + reader.written, over == "canonical"))
        assert distance(np.exp(reader.next_byte_logprobs()), truth) < 1e-6
        reader.push(byte)


def test_bytes_are_generated_until_the_end():
    known = toy("overlap")
    reader = ByteReader(known, Markov(known, (), seed=4), "ab")
    written = bytes(reader.generate(np.random.default_rng(1), 50, temperature=0.8))
    assert written == reader.written and set(written) <= set(b"ab")


def test_bytes_with_a_grammar():
    known = toy("overlap")
    lives = lambda text: re.fullmatch(b"b{0,3}", text) is not None  # noqa: E731
    grammar = lambda written: AllowedByText(known, lambda text: lives(written + text), lives(written))  # noqa: E731
    reader = ByteReader(known, Markov(known, (), seed=4), "ab", grammar=grammar)
    for _ in range(4):
        chances = np.exp(reader.next_byte_logprobs())
        assert chances.sum() == pytest.approx(1) and chances[ord("a")] == 0
        if len(reader.written) == 3:
            assert chances[256] == pytest.approx(1)
            return
        reader.push(b"b")


def test_the_tree_is_flat_and_parents_come_first():
    known = toy("overlap")
    tree = covers(known, heal(known, "abab"), "all")
    assert tree.parents[0] == -1 and tree.tokens[0] == -1 and all(tree.parents[1:] < np.arange(1, len(tree)))
    for number, path in enumerate(tree.paths):
        assert tree.depths[number] == len(path)
        assert tree.covered[number] == len(known.decode_bytes(path))
        seen = np.flatnonzero(tree.attention[number]).tolist()
        assert len(seen) == len(path) + 1 and seen[-1] == number
    with pytest.raises(PromptError, match="canonical"):
        covers(known, heal(known, "ab"), "some")
