"""How far the policy `auto` goes back.

In: a vocabulary and a prompt that was read. Out: how many bytes at the prompt's end are owed.
Idea: the tokens that all encodings of all continuations have in common are what may stay.  Before the last certain cut
    of the pre-tokenizer nothing changes; behind it every reading of the open region gives a canonical way (its closed
    pieces, then the open piece up to its last safe border), and what all ways share is kept.
Cost: 10 to 30 us, whatever the length of the prompt.
Source: own; docs/healing.md has the argument.
Not here: the cut itself (`boundary.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from healfsa.healing import kernels_cover as machine
from healfsa.healing.canon import Canon, Reading, Region, Way, canon_of, positions
from healfsa.healing.kernels_cuts import ASK
from healfsa.healing.prompt import Prompt, text_tail

if TYPE_CHECKING:
    from healfsa.vocab import Vocabulary

WINDOW = 48  # bytes of the tail that are looked at first


@dataclass(frozen=True, slots=True)
class Decision:
    """What `auto` found.

    Attributes
    ----------
    owed : int
        Bytes at the prompt's end that must be given back.
    begin : int
        Bytes from the begin of the open region to the prompt's end.
    kept : tuple[int, ...]
        The canonical tokens from the region's begin up to the owed bytes.
    """

    owed: int
    begin: int
    kept: tuple[int, ...]


def decide(vocabulary: Vocabulary, read: Prompt) -> Decision:
    """Return the shortest tail that must be given back, and what is kept of the open region before it."""
    canon = canon_of(vocabulary)
    if canon is None:
        size = longest_beginning(vocabulary, read)
        return Decision(size, size, ())
    read = behind_added(canon, read)
    region = find_region(canon, read)
    size = len(region.text.encode()) + len(region.rest)
    ways = ways_of(canon, region)
    kept = common_end(ways)
    if kept:
        kept = min(kept, common_end([*ways, *composed(canon, region)]))
    if canon.added.contents:
        kept = min(kept, size - _unfinished_added(canon, read))
    return Decision(size - kept, size, tuple(token for token, end in ways[0] if end <= kept))


def ways_of(canon: Canon, region: Region, before: Sequence[tuple[int, int]] = ()) -> list[Way]:
    """Return the canonical ways of a region, one a reading, each behind the way `before`."""
    return [_way(canon, region, reading, list(before)) for reading in canon.readings(region)]


def composed(canon: Canon, region: Region, before: Sequence[tuple[int, int]] = ()) -> list[Way]:
    """Return the ways of the region with its last character composed with a mark that may follow."""
    end, made = canon.composer.compositions(region.text, region.rest)
    head = region.text[: len(region.text) - len(end)]
    ways = []
    for last in made:
        way, behind = canon.read(head + last)
        start = before[-1][1] if before else 0
        ways += ways_of(canon, behind, [*before, *((token, start + at) for token, at in way)])
    return ways


def behind_added(canon: Canon, read: Prompt) -> Prompt:
    """Return the prompt with added tokens as walls: nothing is merged across one."""
    return Prompt(read.ids, read.rest, read.kinds, canon.added.ids) if canon.added.ids else read


def _unfinished_added(canon: Canon, read: Prompt) -> int:
    """Return how many bytes must be given back since they may become an added token."""
    vocabulary = canon.vocabulary
    tail = read.tail(vocabulary, canon.added.longest)
    owed = 0
    openings = canon.added.openings(tail)
    if not openings and read.ids and not read.is_open(len(read.ids)) and canon.added.begins(_last(vocabulary, read)):
        return len(_last(vocabulary, read)) + len(read.rest)
    for opening in openings:
        length = len(tail) - opening
        owed = max(owed, length + _differing(canon, read, length))
    return owed


def _last(vocabulary: Vocabulary, read: Prompt) -> bytes:
    return vocabulary.bytes_of(read.ids[-1]) or b""


def _differing(canon: Canon, read: Prompt, length: int) -> int:
    """Return how many bytes before the last `length` are encoded otherwise when the text ends there."""
    head = read.before(length, canon.vocabulary)
    region = find_region(canon, head)
    if region.rest:
        return 0
    size = len(region.text.encode())
    closed: Way = []
    canon.finish(closed, region)
    given: Way = []
    at = len(read.ids)
    behind = len(read.rest)
    while read.is_open(at) and behind < length + size:
        at -= 1
        token = read.ids[at]
        given.append((token, size + length - behind))
        behind += len(canon.vocabulary.bytes_of(token) or b"")
    if behind != length + size:
        return size
    return size - min(common_end([closed, given[::-1]]), size)


def longest_beginning(vocabulary: Vocabulary, read: Prompt) -> int:
    """Return the length of the longest suffix that is the proper beginning of a token: safe for any tokenizer."""
    trie = vocabulary.trie
    tail = read.tail(vocabulary, trie.deepest)[-trie.deepest :]
    for start in range(len(tail)):
        node = trie.find(tail[start:])
        if node >= 0 and trie.skip[node] > node + 1:
            return len(tail) - start
    return len(read.rest)


def find_region(canon: Canon, read: Prompt) -> Region:
    """Return the open region at the prompt's end, reading as little of the prompt as it takes."""
    window = WINDOW
    while True:
        raw = read.tail(canon.vocabulary, window)
        whole = len(raw) < window
        while not whole and raw and raw[0] & 0xC0 == 0x80:
            raw = raw[1:]
        start, rest = text_tail(raw)
        text = raw[start : len(raw) - len(rest)].decode()
        begin = canon.begin_of_region(text)
        if begin >= 0 or whole or start > 0:
            return canon.region(text[max(begin, 0) :], rest)
        window *= 8


def _way(canon: Canon, region: Region, reading: Reading, way: Way) -> Way:
    """Return the canonical way of one reading, up to what is certain of it, behind a way that leads to the region."""
    for piece in reading.closed:
        canon.close(way, piece)
    if not reading.piece:
        return way
    border, last, back = piece_border(canon, region, reading)
    end = way[-1][1] if way else 0
    inner: Way = []
    at = border
    while at > 0:
        inner.append((int(last[at]), end + at))
        at = int(back[at])
    return way + inner[::-1]


def piece_border(canon: Canon, region: Region, reading: Reading) -> tuple[int, np.ndarray, np.ndarray]:
    """Return the last safe border in the open piece, and the tree of its prefixes."""
    vocabulary, packed = canon.vocabulary, canon.rules.packed
    piece = np.frombuffer(reading.piece, np.uint8)
    last, back = np.empty(piece.size + 1, np.int32), np.empty(piece.size + 1, np.int32)
    asked, cuts, rest = np.empty(2, np.int32), positions(reading.cuts), len(region.rest)
    texts = (vocabulary.data, vocabulary.offsets)
    while True:
        words = (packed, vocabulary.trie.packed, *texts, *canon.tables)
        found = machine.border(*words, piece, region.state, rest, cuts, last, back, asked)
        if found != ASK:
            return int(found), last, back
        canon.learned.step(int(asked[0]), canon.learned.class_of(chr(asked[1])))


def common_end(ways: list[Way]) -> int:
    """Return where the common beginning of all ways ends."""
    end = 0
    for steps in zip(*ways, strict=False):
        if any(step != steps[0] for step in steps[1:]):
            break
        end = steps[0][1]
    return end
