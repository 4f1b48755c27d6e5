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

from typing import TYPE_CHECKING

import numpy as np

from healfsa.healing import kernels_cover as machine
from healfsa.healing.canon import Canon, Reading, Region, canon_of
from healfsa.healing.completion import undecided
from healfsa.healing.prompt import text_tail

if TYPE_CHECKING:
    from healfsa.healing.prompt import Prompt
    from healfsa.vocab import Vocabulary

WINDOW = 48  # bytes of the tail that are looked at first

Way = list[tuple[int, int]]  # tokens and where each ends, in bytes from the region's begin


def owed_length(vocabulary: Vocabulary, read: Prompt) -> int:
    """Return the length (bytes) of the shortest tail that must be given back."""
    canon = canon_of(vocabulary)
    if canon is None:
        return longest_beginning(vocabulary, read)
    region = find_region(canon, read)
    ways = [way for reading in canon.readings(region) for way in _ways(canon, region, reading)]
    size = len(region.text.encode()) + len(region.rest)
    kept = common_end(ways)
    return max(size - kept, undecided(canon, read, region))


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


def _ways(canon: Canon, region: Region, reading: Reading) -> list[Way]:
    """Return the canonical way of one reading, up to what is certain of it."""
    way: Way = []
    end = 0
    for piece in reading.closed:
        for token in canon.encode_closed(piece):
            end += len(canon.vocabulary.bytes_of(token) or b"")
            way.append((token, end))
    if not reading.piece:
        return [way]
    border, last, back = piece_border(canon, region, reading)
    inner: Way = []
    at = border
    while at > 0:
        inner.append((int(last[at]), end + at))
        at = int(back[at])
    return [way + inner[::-1]]


def piece_border(canon: Canon, region: Region, reading: Reading) -> tuple[int, np.ndarray, np.ndarray]:
    """Return the last safe border in the open piece, and the tree of its prefixes."""
    vocabulary, packed = canon.vocabulary, canon.rules.packed
    piece = np.frombuffer(reading.piece, np.uint8)
    last, back = np.empty(piece.size + 1, np.int32), np.empty(piece.size + 1, np.int32)
    place = np.array([region.state, len(region.text), reading.opened, len(region.rest)], np.int32)
    asked = np.empty(2, np.int32)
    while True:
        found = machine.border(
            packed, vocabulary.trie.packed, vocabulary.data, vocabulary.offsets, *canon.tables, piece, place, last, back, asked
        )
        if found != machine.ASK:
            return int(found), last, back
        canon.segmenter.step(int(asked[0]), canon.segmenter.class_of(chr(asked[1])))


def common_end(ways: list[Way]) -> int:
    """Return where the common beginning of all ways ends."""
    end = 0
    for steps in zip(*ways, strict=False):
        if any(step != steps[0] for step in steps[1:]):
            break
        end = steps[0][1]
    return end
