"""Random context-free grammars in both syntaxes, left recursion of every kind among them, against a naive parser."""

from __future__ import annotations

import random
from collections import defaultdict

import pytest
from regex_machines import ByAutomaton

import healfsa

COUNTS = [(0, None), (1, None), (0, 1), (2, 2), (0, 2), (1, 3), (2, None)]
SUFFIX = {(0, None): "*", (1, None): "+", (0, 1): "?"}
TEXTS = 15


def random_part(rng: random.Random, depth: int, names: list[str]) -> tuple:
    """Return ("text", s), ("set", letters, negated), ("use", name), ("all"|"any", parts) or ("times", part, m, n)."""
    kind = rng.random()
    if depth <= 0 or kind < 0.3:
        if kind < 0.17:
            return "text", "".join(rng.choices("abé", k=rng.randint(1, 2)))
        return ("set", "".join(rng.sample("abcé", 2)), rng.random() < 0.3) if kind < 0.2 else ("use", rng.choice(names))
    if kind < 0.75:
        return "all" if kind < 0.55 else "any", [random_part(rng, depth - 1, names) for _ in range(rng.randint(1, 3))]
    return "times", random_part(rng, depth - 1, names), *rng.choice(COUNTS)


def written(part: tuple, lark: bool) -> str:
    kind = part[0]
    if kind == "text":
        return f'"{part[1]}"'
    if kind == "set":
        letters = f"[{'^' * part[2]}{part[1]}]"
        return f"/{letters}/" if lark else letters
    if kind == "use":
        return part[1]
    if kind in ("all", "any"):
        return "(" + (" " if kind == "all" else " | ").join(written(p, lark) for p in part[1]) + ")"
    least, most = part[2:]
    counts = f"{{{least},{'' if most is None else most}}}"
    return f"({written(part[1], lark)}){SUFFIX.get((least, most), counts)}"


class Naive:
    """Which spans of a text each rule matches: the least solution, found by rounds."""

    def __init__(self, rules: dict[str, tuple], text: str) -> None:
        self.text = text
        self.known: dict[tuple[str, int], set[int]] = defaultdict(set)
        changed = True
        while changed:
            changed = False
            for name, part in rules.items():
                for start in range(len(text) + 1):
                    ends = self.ends(part, start)
                    if not ends <= self.known[name, start]:
                        self.known[name, start] |= ends
                        changed = True

    def ends(self, part: tuple, start: int) -> set[int]:
        kind, text = part[0], self.text
        if kind == "text":
            return {start + len(part[1])} if text.startswith(part[1], start) else set()
        if kind == "set":
            return {start + 1} if start < len(text) and (text[start] in part[1]) != part[2] else set()
        if kind == "use":
            return set(self.known[part[1], start])
        if kind == "any":
            return set().union(*(self.ends(p, start) for p in part[1]))
        if kind == "all":
            return self.through(part[1], {start})
        _, body, least, most = part
        reached = self.through([body] * least, {start})
        for _ in range(len(text) + 1 if most is None else most - least):
            reached |= self.through([body], reached)
        return reached

    def through(self, parts: list[tuple], places: set[int]) -> set[int]:
        for part in parts:
            places = set().union(*(self.ends(part, place) for place in places))
        return places


def check(seed: int) -> None:
    rng = random.Random(seed)
    lark = rng.random() < 0.5
    start = "start" if lark else "root"
    names = [start, "x", "y", "z"][: rng.randint(1, 4)]
    rules = {name: random_part(rng, rng.randint(1, 3), names) for name in names}
    source = "\n".join(f"{name} {':' if lark else '::='} {written(part, lark)}" for name, part in rules.items())
    found = ByAutomaton((healfsa.lark if lark else healfsa.gbnf)(source).expression)
    for _ in range(TEXTS):
        text = "".join(rng.choices("abcé", weights=(4, 4, 1, 1), k=rng.randint(0, 6)))
        assert found(text) == (len(text) in Naive(rules, text).known[start, 0]), (source, text)


@pytest.mark.parametrize("seed", range(4))
def test_random_grammars(seed: int):
    for number in range(40):
        check(1000 * seed + number)


@pytest.mark.slow
def test_many_random_grammars():
    for number in range(5000):
        check(100_000 + number)
