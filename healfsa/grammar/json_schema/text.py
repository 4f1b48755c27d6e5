"""The atoms of JSON text in one style: characters, strings, separators, brackets, constants.

In: a `Style`, code point ranges, Python strings. Out: expressions over bytes.
Idea: everything above this file speaks of characters and values; only here are they spelled. A character has one
    spelling in the minimal style and up to seven in the whole language, so a pattern compiled through `character` is
    right in both.
Cost: a range of code points is a handful of nodes, made once and shared.
Source: RFC 8259, sections 2, 7; what Python's `json.dumps` writes.
Not here: numbers (see numbers.py), which values a schema means.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from json.encoder import encode_basestring, encode_basestring_ascii

from healfsa.grammar import expression as ex
from healfsa.grammar.json_schema.style import Style
from healfsa.grammar.utf8 import code_points

Ranges = tuple[tuple[int, int], ...]
SCALARS: Ranges = ((0, 0xD7FF), (0xE000, 0x10FFFF))
_SHORT = {8: "b", 9: "t", 10: "n", 12: "f", 13: "r", 34: '"', 92: "\\"}
_MUST_ESCAPE: Ranges = ((0, 0x1F), (0x22, 0x22), (0x5C, 0x5C))
_NON_ASCII: Ranges = ((0x7F, 0xD7FF), (0xE000, 0x10FFFF))
MOST_KEPT = 1024
_WHITE = ex.byte_set(b" \t\n\r")
_QUOTE = ex.literal(b'"')


class Writer:
    """Spells JSON text in one style; shared by all schemas of the style, it keeps only memos."""

    def __init__(self, style: Style) -> None:
        self.style = style
        self.key = style.key()
        self.keys: dict[str, tuple[ex.Expression, ...]] = {}  # keys of objects with their colons
        self.pretty = style.white_space == "pretty"
        self.gap = _gap(style)
        self._memo: dict[Ranges, ex.Expression] = {}
        self._many = "all" if style.escapes == "any" else "beyond ASCII" if style.non_ascii == "any" else ""
        self._spelled = encode_basestring_ascii if style.non_ascii == "escaped" else encode_basestring
        self.formats: dict[str, ex.Expression] = {}
        self.scalars: dict[tuple, ex.Expression] = {}  # texts of schemas that come again (leaves.py)
        self.anything: ex.Expression | None = None  # every value, made by the first schema that needs it (emit.py)
        self.any_character = ex.share(self.character(SCALARS))
        self.any_body = ex.share(ex.repeat(self.any_character))
        self.any_string = self.string(self.any_body)
        space = {"spaced": ex.optional(ex.literal(b" ")), "single": ex.literal(b" "), "pretty": ex.literal(b" ")}
        self.colon = ex.concat(self.gap, ex.literal(b":"), space.get(style.white_space, self.gap))
        after = ex.EMPTY if self.pretty else space.get(style.white_space, self.gap)
        self._comma = ex.concat(self.gap, ex.literal(b","), after)
        self.key_end = _parts(ex.concat(_QUOTE, self.colon))
        self._key_end: bytes = self.key_end[0].data  # type: ignore[attr-defined]  # it begins with the quote
        self._brackets = {b: ex.literal(b) for b in (b"{", b"}", b"[", b"]")}
        self._pairs = {b[:1]: ex.concat(ex.literal(b[:1]), self.gap, ex.literal(b[1:])) for b in (b"{}", b"[]")}

    def character(self, ranges: Iterable[tuple[int, int]]) -> ex.Expression:
        """Return one character out of `ranges` (inclusive), in all spellings of the style."""
        wanted = intersect(normal(ranges), SCALARS)
        if wanted not in self._memo:
            if len(self._memo) >= MOST_KEPT:
                self._memo.clear()
            self._memo[wanted] = self._spell(wanted)
        return self._memo[wanted]

    def _spell(self, wanted: Ranges) -> ex.Expression:
        raw = subtract(wanted, _MUST_ESCAPE)
        escaped = intersect(wanted, _MUST_ESCAPE)
        if self.style.non_ascii == "escaped":
            raw, escaped = subtract(raw, _NON_ASCII), union(escaped, intersect(wanted, _NON_ASCII))
        elif self.style.non_ascii == "any":
            escaped = union(escaped, intersect(wanted, _NON_ASCII))
        if self.style.escapes == "any":
            escaped = union(escaped, intersect(wanted, ((0, 0x7F),)))
        return ex.choice(code_points(raw) if raw else ex.NOTHING, self._escapes(escaped))

    def _escapes(self, ranges: Ranges) -> ex.Expression:
        every = self.style.escapes == "any"
        short = [ex.literal(b"\\" + c.encode()) for p, c in _SHORT.items() if _holds(ranges, p)]
        if every and _holds(ranges, 0x2F):
            short.append(ex.literal(b"\\/"))
        long = ranges if every else subtract(ranges, tuple((p, p) for p in sorted(_SHORT)))
        return ex.choice(*short, _unicode_escapes(long, every))

    def body(self, text: str) -> ex.Expression:
        """Return the characters of `text`, spelled for the inside of a string."""
        if not is_text(text):
            return ex.NOTHING
        plain = self._plain(text)
        if plain is not None:
            return ex.literal(plain)
        return ex.concat(*(self.character(((ord(c), ord(c)),)) for c in text))

    def bodies(self, texts: Iterable[str]) -> ex.Expression:
        """Return one of `texts`; a trie where each has one spelling."""
        wanted = {text for text in texts if text.isascii() or is_text(text)}
        spelled = [found for found in map(self._plain, wanted) if found is not None]
        return ex.literals(spelled) if len(spelled) == len(wanted) else self._trie(sorted(wanted), 0)

    def _trie(self, texts: list[str], depth: int) -> ex.Expression:
        if len(texts) == 1:
            return self.body(texts[0][depth:])
        branches: dict[str, list[str]] = {}
        for text in texts:
            branches.setdefault(text[depth : depth + 1], []).append(text)
        parts: list[ex.Expression] = [ex.EMPTY] if "" in branches else []
        for head, group in branches.items():
            if head:
                same = _shared(group, depth)
                parts.append(ex.concat(self.body(group[0][depth:same]), self._trie(group, same)))
        return ex.choice(*parts)

    def _plain(self, text: str) -> bytes | None:
        if self._many and (self._many == "all" or not text.isascii()):
            return None
        return self._spelled(text)[1:-1].encode()

    def string(self, body: ex.Expression) -> ex.Expression:
        """Return `body` between quotes."""
        return ex.concat(_QUOTE, body, _QUOTE)

    def member(self, name: str) -> tuple[ex.Expression, ...]:
        """Return the key `name` with its colon as parts of a sequence, none where no text can mean it."""
        found = self.keys.get(name)
        if found is None:
            if len(self.keys) >= MOST_KEPT:
                self.keys.clear()
            plain = self._plain(name) if is_text(name) else None
            if plain is not None:
                found = (ex.Literal(b'"' + plain + self._key_end), *self.key_end[1:])
            else:
                whole = ex.concat(_QUOTE, self.body(name), *self.key_end)
                found = () if whole is ex.NOTHING else _parts(whole)
            self.keys[name] = found
        return found

    def other_member(self, names: Iterable[str], value: ex.Expression) -> ex.Expression:
        """Return a member with any key but those named."""
        key = ex.both(self.any_body, ex.complement(self.bodies(names)))
        return ex.Concat((_QUOTE, key, *self.key_end, value))

    def comma(self, depth: int) -> ex.Expression:
        """Return the comma between two items at `depth`."""
        return ex.concat(self._comma, self._line(depth)) if self.pretty else self._comma

    def _line(self, depth: int) -> ex.Expression:
        return ex.literal(b"\n" + b" " * (self.style.indent * depth))

    def wrap(self, opening: bytes, inner: ex.Expression, closing: bytes, depth: int, empty: bool) -> ex.Expression:
        """Return brackets around `inner` (never empty itself) at `depth`, and the empty pair if `empty`."""
        pair = self._pairs[opening] if empty else ex.NOTHING
        lead, tail = (self._line(depth + 1), self._line(depth)) if self.pretty else (self.gap, self.gap)
        return ex.choice(pair, ex.concat(self._brackets[opening], lead, inner, tail, self._brackets[closing]))


@lru_cache(maxsize=32)
def writer_of(style: Style) -> Writer:
    """Return the writer of a style."""
    return Writer(style)


class RawWriter:
    """Spells characters as they are, for strings outside JSON: the keys that a pattern is asked about."""

    key = "raw"

    def __init__(self) -> None:
        self.any_character = code_points(SCALARS)
        self.any_body = ex.repeat(self.any_character)
        self.formats: dict[str, ex.Expression] = {}

    def character(self, ranges: Iterable[tuple[int, int]]) -> ex.Expression:
        """Return one character out of `ranges`."""
        return code_points(ranges)

    def bodies(self, texts: Iterable[str]) -> ex.Expression:
        """Return one of `texts`."""
        return ex.literals(t.encode() for t in texts if is_text(t))


RAW = RawWriter()


def _shared(group: list[str], depth: int) -> int:
    """Return how far all texts of a sorted group agree, from `depth` on."""
    first, last = group[0], group[-1]
    same = depth
    while same < len(first) and same < len(last) and first[same] == last[same]:
        same += 1
    return same


def _parts(sequence: ex.Expression) -> tuple[ex.Expression, ...]:
    return sequence.parts if isinstance(sequence, ex.Concat) else (sequence,)


def _gap(style: Style) -> ex.Expression:
    return ex.repeat(_WHITE, 0, style.white_space_limit) if style.white_space == "any" else ex.EMPTY


def spell(text: str, ascii_only: bool = False) -> bytes:
    """Return the minimal spelling of `text` inside a string, as `json.dumps` writes it."""
    return (encode_basestring_ascii(text) if ascii_only else encode_basestring(text))[1:-1].encode()


def is_text(text: str) -> bool:
    """Say whether `text` is Unicode text: a lone surrogate is not, and no JSON text in UTF-8 can mean it."""
    return text.isascii() or not any("\ud800" <= c <= "\udfff" for c in text)


def _holds(ranges: Ranges, point: int) -> bool:
    return any(a <= point <= b for a, b in ranges)


def _unicode_escapes(ranges: Ranges, both_cases: bool) -> ex.Expression:
    parts: list[ex.Expression] = []
    for low, high in ranges:
        if low <= 0xFFFF:
            parts.append(_hex(low, min(high, 0xFFFF), both_cases))
        if high > 0xFFFF:
            parts += _pairs(max(low, 0x10000) - 0x10000, high - 0x10000, both_cases)
    return ex.choice(*parts)


def _pairs(low: int, high: int, both_cases: bool) -> list[ex.Expression]:
    """Return surrogate pairs for the offsets low..high: a first block, whole blocks, a last block."""
    blocks: list[tuple[int, int, int, int]] = []
    first, last = low >> 10, high >> 10
    if first == last:
        blocks.append((first, first, low & 0x3FF, high & 0x3FF))
    else:
        blocks += [(first, first, low & 0x3FF, 0x3FF), (last, last, 0, high & 0x3FF)]
        if last - first > 1:
            blocks.append((first + 1, last - 1, 0, 0x3FF))
    return [
        ex.concat(_hex(0xD800 + a, 0xD800 + b, both_cases), _hex(0xDC00 + c, 0xDC00 + d, both_cases))
        for a, b, c, d in blocks
    ]


def _hex(low: int, high: int, both_cases: bool) -> ex.Expression:
    return ex.concat(ex.literal(b"\\u"), _digits(low, high, 4, both_cases))


def _digits(low: int, high: int, width: int, both_cases: bool) -> ex.Expression:
    """Return the hexadecimal numbers low..high, written with `width` digits."""
    if width == 0:
        return ex.EMPTY
    size = 16 ** (width - 1)
    first, last = low // size, high // size
    if first == last:
        rest = _digits(low % size, high % size, width - 1, both_cases)
        return ex.concat(_digit(first, first, both_cases), rest)
    parts = []
    if low % size:
        parts.append(ex.concat(_digit(first, first, both_cases), _digits(low % size, size - 1, width - 1, both_cases)))
        first += 1
    if high % size != size - 1:
        parts.append(ex.concat(_digit(last, last, both_cases), _digits(0, high % size, width - 1, both_cases)))
        last -= 1
    if first <= last:
        whole = ex.repeat(_digit(0, 15, both_cases), width - 1, width - 1)
        parts.append(ex.concat(_digit(first, last, both_cases), whole))
    return ex.choice(*parts)


def _digit(low: int, high: int, both_cases: bool) -> ex.Expression:
    digits = "0123456789abcdef"[low : high + 1]
    return ex.byte_set((digits + digits.upper() if both_cases else digits).encode())


def normal(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Return the same set as sorted, disjoint, non-adjacent ranges."""
    found: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if found and low <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(high, found[-1][1]))
        elif low <= high:
            found.append((low, high))
    return tuple(found)


def union(a: Ranges, b: Ranges) -> Ranges:
    """Return the points of either set."""
    return normal(a + b)


def intersect(a: Ranges, b: Ranges) -> Ranges:
    """Return the points of both sets."""
    return normal((max(x, u), min(y, v)) for x, y in a for u, v in b if max(x, u) <= min(y, v))


def subtract(a: Ranges, b: Ranges) -> Ranges:
    """Return the points of `a` that are not in `b`."""
    for low, high in b:
        pieces = [p for x, y in a for p in ((x, min(y, low - 1)), (max(x, high + 1), y))]
        a = normal(p for p in pieces if p[0] <= p[1])
    return a
