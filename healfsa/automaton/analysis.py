"""What a user may ask about a grammar: is it empty, what does it accept, how does it compare, where does a text fail.

In: an expression (or an automaton of it). Out: plain answers, and small values that explain themselves as text.
Idea: every answer is a walk of the lazy automaton; nothing is built that the question does not reach.
Cost: a few microseconds a state that is looked at; bounded by `Limits.search` (`LimitExceeded` beyond).
Not here: grammars (the caller's), pictures.
"""

from __future__ import annotations

import random
import re
import string
from collections import deque
from dataclasses import dataclass

from healfsa.automaton.automaton import Automaton
from healfsa.automaton.compare import first_pair
from healfsa.automaton.edges import Edge, Graph
from healfsa.automaton.lengths import longest
from healfsa.errors import EmptyLanguage
from healfsa.grammar.expression import Expression

LETTERS, DIGITS = string.ascii_lowercase.encode(), b"123456789"
FRIENDLY = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")


@dataclass(frozen=True, slots=True)
class Equivalence:
    """Whether two grammars accept the same texts; false with a shortest text that only one accepts."""

    example: bytes | None
    accepted_by: str = ""

    def __bool__(self) -> bool:
        return self.example is None

    def __str__(self) -> str:
        if self.example is None:
            return "both accept the same texts"
        return f"only the {self.accepted_by} accepts {shown(self.example)!r}"


@dataclass(frozen=True, slots=True)
class Overlap:
    """Whether some text is accepted by both grammars; true with a shortest one."""

    example: bytes | None

    def __bool__(self) -> bool:
        return self.example is not None

    def __str__(self) -> str:
        return "no text is accepted by both" if self.example is None else f"both accept {shown(self.example)!r}"


@dataclass(frozen=True, slots=True)
class Explanation:
    """How far a text is acceptable.

    Attributes
    ----------
    accepted : bool
        The whole text is accepted.
    offset : int
        Number of bytes that begin some accepted text; all of them where nothing is wrong.
    may_end : bool
        The text could end at `offset`.
    expected : bytes
        The bytes that could follow at `offset`, in order.
    specials : tuple of str
        Special tokens that could follow there.
    data : bytes
        The text that was asked about.
    """

    accepted: bool
    offset: int
    may_end: bool
    expected: bytes
    specials: tuple[str, ...]
    data: bytes

    def __bool__(self) -> bool:
        return self.accepted

    def __str__(self) -> str:
        if self.accepted:
            return "accepted"
        ways = [named(self.expected)] if self.expected else []
        ways += list(self.specials) + (["the end"] if self.may_end else [])
        follow = " or ".join(ways) or "nothing"
        begin = self.data[max(0, self.offset - 20) : self.offset]
        where = f"after {shown(begin)!r} (byte {self.offset})"
        if self.offset == len(self.data):
            return f"incomplete: {where} must follow {follow}"
        return f"{where} may follow {follow}, not {shown(self.data[self.offset : self.offset + 8])!r}"


def shown(data: bytes) -> str:
    """Return bytes as text; what is not UTF-8 becomes escapes."""
    return data.decode("utf-8", "backslashreplace")


def named(members: bytes) -> str:
    """Return a short description of a set of bytes: ranges, printable ones as themselves."""
    runs: list[list[int]] = []
    for byte in members:
        if runs and byte == runs[-1][1] + 1:
            runs[-1][1] = byte
        else:
            runs.append([byte, byte])
    spell = [chr(b) if 33 <= b < 127 else f"\\x{b:02x}" for b in range(256)]
    parts = [
        spell[a] if a == b else f"{spell[a]}{spell[b]}" if b == a + 1 else f"{spell[a]}-{spell[b]}" for a, b in runs
    ]
    text = "".join(parts[:24]) + ("..." if len(parts) > 24 else "")
    return f"{text!r}" if len(members) == 1 else f"one of [{text}]"


def automaton_of(language: Expression | Automaton) -> Automaton:
    """Return the automaton of an expression; an automaton is returned as it is."""
    return language if isinstance(language, Automaton) else Automaton.from_expression(language)


def _built(language: Expression | Automaton) -> Automaton | None:
    """Return the automaton, None for the empty language."""
    try:
        return automaton_of(language)
    except EmptyLanguage:
        return None


def is_empty(language: Expression | Automaton) -> bool:
    """Say whether nothing at all is accepted."""
    return _built(language) is None


def accepts(language: Expression | Automaton, data: bytes) -> bool:
    """Say whether `data` is accepted from its first to its last byte."""
    automaton = _built(language)
    if automaton is None:
        return False
    state = automaton.step(automaton.start, data)
    return state > 0 and automaton.is_accepting(state)


def accepts_prefix(language: Expression | Automaton, data: bytes) -> bool:
    """Say whether some accepted text begins with `data`."""
    automaton = _built(language)
    return automaton is not None and automaton.step(automaton.start, data) > 0


def example(language: Expression | Automaton, seed: int = 0) -> str:
    """Return one accepted text, the same for the same seed; special tokens on its way are left out."""
    return shown(_random_text(Graph(automaton_of(language)), random.Random(seed)))


def examples(language: Expression | Automaton, n: int) -> list[str]:
    """Return up to `n` different accepted texts, fewer only where there are fewer."""
    automaton = _built(language)
    if automaton is None or n <= 0:
        return []
    graph = Graph(automaton)
    found: dict[bytes, None] = {}
    for seed in range(2 * n):
        found[_random_text(graph, random.Random(seed))] = None
        if len(found) >= n:
            break
    return [shown(data) for data in [*found, *_systematic(graph, n, found)][:n]]


def _random_text(graph: Graph, rng: random.Random) -> bytes:
    """Return a random accepted text: some random steps, then the shortest way out."""
    automaton, state, out = graph.automaton, graph.automaton.start, bytearray()
    for _ in range(rng.choice((8, 16, 32, 64, 128))):
        edges = graph.edges(state)
        if not edges or (automaton.is_accepting(state) and rng.random() < 0.3):
            break
        plain = [e for e in edges if e.special >= 0 or e.bytes[0] < 128]
        edge = rng.choice(plain if plain and rng.random() < 0.95 else edges)
        out += _random_byte(edge, rng)
        state = edge.target
    return bytes(out) + graph.shortest(state)


def _random_byte(edge: Edge, rng: random.Random) -> bytes:
    """Return one byte of an edge, a letter or digit where there is one; nothing for a special token."""
    if edge.special >= 0:
        return b""
    pool = [b for b in edge.bytes if b in FRIENDLY] or edge.bytes
    return bytes([rng.choice(pool)])


def _systematic(graph: Graph, n: int, found: dict[bytes, None]) -> list[bytes]:
    """Return accepted texts that are not in `found`, until there are `n` in all: every prefix and its shortest end."""
    fresh: dict[bytes, None] = {}
    queue = deque([(b"", graph.automaton.start)])
    while queue and len(found) + len(fresh) < n:
        prefix, state = queue.popleft()
        text = prefix + graph.shortest(state)
        if text not in found:
            fresh[text] = None
        for edge in graph.edges(state):
            queue.extend((prefix + bytes([b]), edge.target) for b in edge.bytes)
            if edge.special >= 0:
                queue.append((prefix, edge.target))
    return list(fresh)


def equivalent(one: Expression | Automaton, two: Expression | Automaton) -> Equivalence:
    """Compare two languages; false with a shortest text that only one of them accepts."""
    first, second = _built(one), _built(two)
    if first is None or second is None:
        alive, side = (second, "second") if first is None else (first, "first")
        return Equivalence(None) if alive is None else Equivalence(Graph(alive).shortest(alive.start), side)
    data = first_pair(first, second, lambda a, b: a != b, both_alive=False)
    if data is None:
        return Equivalence(None)
    return Equivalence(data, "first" if accepts(first, data) else "second")


def overlaps(one: Expression | Automaton, two: Expression | Automaton) -> Overlap:
    """Say whether two languages share a text; true with a shortest one."""
    first, second = _built(one), _built(two)
    if first is None or second is None:
        return Overlap(None)
    return Overlap(first_pair(first, second, lambda a, b: a and b, both_alive=True))


def min_length(language: Expression | Automaton) -> int:
    """Return the number of bytes of a shortest accepted text."""
    automaton = automaton_of(language)
    return len(Graph(automaton).shortest(automaton.start))


def max_length(language: Expression | Automaton) -> int | None:
    """Return the number of bytes of a longest accepted text, None where there is no longest."""
    return longest(language if isinstance(language, Expression) else None, lambda: automaton_of(language))


def explain(language: Expression | Automaton, data: bytes) -> Explanation:
    """Say how far `data` is acceptable, what could follow there and whether the text could end there."""
    automaton = _built(language)
    if automaton is None:
        return Explanation(False, 0, False, b"", (), data)
    offset, state = _farthest(automaton, data)
    edges = Graph(automaton).edges(state)
    expected = bytes(sorted(b for edge in edges for b in edge.bytes))
    specials = tuple(automaton.specials[edge.special] for edge in edges if edge.special >= 0)
    may_end = automaton.is_accepting(state)
    return Explanation(may_end and offset == len(data), offset, may_end, expected, specials, data)


def _farthest(automaton: Automaton, data: bytes) -> tuple[int, int]:
    """Return how many bytes are acceptable, and the state behind them."""
    state = automaton.start
    for offset, byte in enumerate(data):
        following = automaton.step(state, bytes([byte]))
        if following == 0:
            return offset, state
        state = following
    return len(data), state


def is_endless(language: Expression | Automaton, many: int = 10_000, most: int = 500) -> bool:
    """Say whether at least `many` different values can be shown to be among accepted JSON texts.

    A run of letters or of digits that may go on for ever is such a proof, or one with so many ways to be: characters
    beyond ASCII and letters stand for themselves wherever they can be chosen, and so do the digits 1 to 9 in front of a
    fraction. Up to `most` states are looked at.
    """
    automaton = automaton_of(language)
    graph = Graph(automaton)
    seen, queue = {automaton.start}, deque([(automaton.start, b"")])
    while queue and len(seen) < most:
        state, text = queue.popleft()
        number = re.search(rb"[-+0-9.eE]*$", text)
        whole = number is not None and not re.search(rb"[.eE]", number[0])
        if _runs(automaton, state, LETTERS, many) or (whole and _runs(automaton, state, DIGITS, many)):
            return True
        for edge in graph.edges(state):
            if edge.bytes and edge.target not in seen:
                seen.add(edge.target)
                queue.append((edge.target, text + edge.bytes[:1]))
    return False


def _runs(automaton: Automaton, state: int, among: bytes, many: int) -> bool:
    """Say whether characters of a set may follow each other for ever, or in so many ways."""
    ways, seen = 1, {state}
    while ways < many:
        ahead = [after for byte in among if (after := automaton.step(state, bytes([byte]))) > 0]
        if len(ahead) < 2:
            return False
        ways *= len(ahead) + (_beyond_ascii(automaton, state) if among is LETTERS else 0)
        state = ahead[0]
        if state in seen:
            return True
        seen.add(state)
    return True


def _beyond_ascii(automaton: Automaton, state: int) -> int:
    """Return how many of the characters U+5000 to U+5FFF may follow."""
    after = automaton.step(state, b"\xe5")
    return sum(automaton.next_bytes(automaton.step(after, bytes([b]))).bit_count() for b in range(0x80, 0xC0))
