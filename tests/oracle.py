"""A naive, independent reading of expressions: which spans of a text does a node match?

Idea: `ends(node, data, i)` is the set of j such that the node matches data[i:j], straight from the definition of each
node; no derivatives, no automaton, so it can disagree with the product. Special tokens never match bytes.
Cost: polynomial but slow; for texts of some dozens of bytes.
"""

from __future__ import annotations

from functools import lru_cache

from healfsa.grammar import expression as ex


def matches(node: ex.Expression, data: bytes) -> bool:
    """Say whether `node` accepts exactly `data`."""
    return len(data) in Reader(data).ends(node, 0)


def is_same(known: ex.Expression | bytes, text: bytes) -> bool:
    """Say whether `text` is among the texts of a thing."""
    return known == text if isinstance(known, bytes) else matches(known, text)


class Reader:
    """Answers for one text, memoised per (node, position)."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.memo: dict[tuple, frozenset[int]] = {}
        self.busy: set[tuple] = set()

    def ends(self, node: ex.Expression, i: int) -> frozenset[int]:
        key = (id(node), i)
        if key in self.memo:
            return self.memo[key]
        if key in self.busy:  # left recursion: the least fixed point starts from nothing
            return frozenset()
        self.busy.add(key)
        found = frozenset(getattr(self, "_" + type(node).__name__.lower())(node, i))
        self.busy.discard(key)
        self.memo[key] = found
        return found

    def _nothing(self, node, i):
        return ()

    def _empty(self, node, i):
        return (i,)

    def _bytes(self, node, i):
        return (i + 1,) if i < len(self.data) and node.members >> self.data[i] & 1 else ()

    def _literal(self, node, i):
        return (i + len(node.data),) if self.data.startswith(node.data, i) else ()

    def _literals(self, node, i):
        return {i + len(s) for s in node.strings if self.data.startswith(s, i)}

    def _concat(self, node, i):
        found = {i}
        for part in node.parts:
            found = {k for j in found for k in self.ends(part, j)}
        return found

    def _characters(self, node, i):
        return self._choice(node, i)

    def _choice(self, node, i):
        return frozenset().union(*(self.ends(p, i) for p in node.parts))

    def _both(self, node, i):
        return frozenset.intersection(*(self.ends(p, i) for p in node.parts))

    def _not(self, node, i):
        return frozenset(range(i, len(self.data) + 1)) - self.ends(node.part, i)

    def _repeat(self, node, i):
        # shortest number of rounds is not enough (bounds both ways), so walk rounds;
        # stop when the set of (round, end) repeats
        found: set[int] = set()
        at, rounds = frozenset({i}), 0
        nullable = {j for j in range(i, len(self.data) + 1) if j in self.ends(node.part, j)}
        seen = set()
        while at and (node.most is None or rounds <= node.most):
            if rounds >= node.least:
                found |= at
                if at in seen:
                    break
                seen.add(at)
            elif at and all(j in nullable for j in at) and rounds > len(self.data) + 1:
                rounds = node.least  # only empty rounds are left
                continue
            at = frozenset(k for j in at for k in self.ends(node.part, j))
            rounds += 1
        return found

    def _ref(self, node, i):
        return self.ends(node.rule.resolve(), i)

    def _special(self, node, i):
        return ()

    def _distinct(self, node, i):
        def after(j: int, texts: tuple[bytes, ...]) -> set[int]:
            found: set[int] = set()
            for e in self.ends(node.item, j):
                text = self.data[j:e]
                if any(is_same(node.same(old), text) for old in texts):
                    continue
                now = (*texts, text)
                found |= {e} if len(now) >= node.least else set()
                if node.most is None or len(now) < node.most:
                    for s in self.ends(node.separator, e):
                        found |= after(s, now)
            return found

        return after(i, ())

    def _members(self, node, i):
        everything = frozenset(range(len(node.members)))

        @lru_cache(None)
        def after(j: int, left: frozenset, count: int, fresh: bool) -> frozenset[int]:
            done = {j} if not (left & node.required) and count >= node.least else set()
            if node.most is not None and count >= node.most:
                return frozenset(done)
            starts = {j} if fresh else self.ends(node.separator, j)
            for s in starts:
                needed = min(left & node.required, default=None)
                for m in left:
                    if node.ordered and needed is not None and m > needed:
                        continue
                    rest = frozenset(k for k in left if k > m) if node.ordered else left - {m}
                    for e in self.ends(node.members[m], s):
                        done |= after(e, rest, count + 1, False)
                if node.extra is not None and not (node.ordered and left & node.required):
                    rest = frozenset() if node.ordered else left
                    for e in self.ends(node.extra, s):
                        if e > s or not fresh:
                            done |= after(e, rest, count + 1, False)
            return frozenset(done)

        return after(i, everything, 0, True)
