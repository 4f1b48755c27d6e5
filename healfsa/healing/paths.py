"""The canonical paths of covers.

In: a canon and a boundary. Out: the paths from the boundary's kept ids, with their leaves, still growing.
Idea: read the text from the last certain cut before the kept ids end: closed pieces are a chain, the open piece a tree
    with one node a byte position; what passes through the kept border and leads to a leaf is a path.
Cost: some us a byte of the open region, and what the leaves cost.
Source: own.
Not here: segmentations that the tokenizer never makes (`cover.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from healfsa.healing import kernels_cover as machine
from healfsa.healing.auto import behind_added, common_end, composed, ways_of
from healfsa.healing.canon import Canon, Reading, Region, Way
from healfsa.healing.prompt import read_prompt, text_tail

if TYPE_CHECKING:
    from healfsa.healing.boundary import Boundary
    from healfsa.healing.cover import Growing

WINDOW = 96  # bytes of the kept ids that are looked at first


@dataclass(frozen=True, slots=True)
class Lead:
    """A text from a certain cut on: its closed pieces as a chain, its open region, and where the kept ids end in it."""

    chain: Way
    region: Region
    begin: int
    border: int


def settled(canon: Canon, boundary: Boundary) -> Way | None:
    """Return the tokens that the owed bytes make whatever follows, each with its end in the owed bytes.

    None where the owed bytes are no text, or the tokenizer would have merged over the border.
    """
    lead = _lead(canon, boundary, fresh=False)
    if lead is None or lead.region.rest:
        return None
    ways = ways_of(canon, lead.region, lead.chain)
    end = common_end([*ways, *composed(canon, lead.region, lead.chain)])
    text = canon.vocabulary.decode_bytes(token for token, _ in lead.chain if token >= 0) + lead.region.text.encode()
    for opening in canon.added.openings(text):
        way, region = canon.read(text[:opening].decode())
        canon.finish(way, region)
        end = min(end, common_end([ways[0], way]))
    if lead.border not in {0, *(at for _, at in ways[0])}:
        return None
    return [(token, at - lead.border) for token, at in ways[0] if lead.border < at <= end]


def finished(canon: Canon, boundary: Boundary) -> Way | None:
    """Return the tokens that the owed bytes make when the text ends behind them; None as in `settled`."""
    lead = _lead(canon, boundary, fresh=False)
    if lead is None or lead.region.rest:
        return None
    way = list(lead.chain)
    canon.finish(way, lead.region)
    if lead.border not in {0, *(at for _, at in way)}:
        return None
    return [(token, at - lead.border) for token, at in way if at > lead.border]


def canonical_paths(canon: Canon, boundary: Boundary) -> Growing | None:
    """Return the canonical paths of a boundary; None where its owed bytes are no text."""
    lead = _lead(canon, boundary)
    if lead is None:
        return None
    from healfsa.healing.cover import Growing

    grown = Growing()
    for reading in canon.readings(lead.region):
        _read(canon, lead, reading, grown)
    if not lead.region.rest:
        _ending(canon, lead, grown)
    _added(canon, boundary, lead, grown)
    return grown


def _lead(canon: Canon, boundary: Boundary, *, fresh: bool = True) -> Lead | None:
    """Read the text of the boundary from a cut that is certain.

    Where the border is none for the tokenizer, read it from the border itself if `fresh`; otherwise there is none.
    """
    start, rest = text_tail(boundary.owed)
    if start:
        return None
    before = _certain_text(canon, boundary)
    lead = None
    for head in (before, b"") if before and fresh else (before,):
        start, rest = text_tail(head + boundary.owed)
        if start:
            continue
        whole = head + boundary.owed
        chain, region = canon.read(whole[: len(whole) - len(rest)].decode(), rest)
        lead = Lead(chain, region, chain[-1][1] if chain else 0, len(head))
        if any(_passes(canon, lead, reading) for reading in canon.readings(region)):
            return lead
    return lead if fresh else None


def _certain_text(canon: Canon, boundary: Boundary) -> bytes:
    """Return the end of the kept ids' text from the last certain cut on."""
    vocabulary = canon.vocabulary
    read = behind_added(canon, read_prompt(vocabulary, boundary.end)[0])
    window = WINDOW
    while True:
        raw = read.tail(vocabulary, window)
        whole = len(raw) < window
        while not whole and raw and raw[0] & 0xC0 == 0x80:
            raw = raw[1:]
        start, rest = text_tail(raw)
        text = raw[start : len(raw) - len(rest)].decode()
        begin = canon.begin_of_region(text)
        if begin >= 0 or whole or start > 0:
            return text[max(begin, 0) :].encode() + rest
        window *= 8


def _closed(canon: Canon, lead: Lead, reading: Reading) -> tuple[Way, int]:
    """Return the way through all closed pieces of a reading, and its end."""
    way = list(lead.chain)
    for piece in reading.closed:
        canon.close(way, piece)
    return way, way[-1][1] if way else 0


def _passes(canon: Canon, lead: Lead, reading: Reading) -> bool:
    """Return whether the kept border is one of the reading's borders."""
    chain, end = _closed(canon, lead, reading)
    if lead.border <= end:
        return lead.border in {0, *(at for _, at in chain)}
    last, _ = _tree(canon, reading)
    return last[lead.border - end] >= 0


def _tree(canon: Canon, reading: Reading) -> tuple[np.ndarray, np.ndarray]:
    """Return the prefix tree of the open piece."""
    piece = np.frombuffer(reading.piece, np.uint8)
    last, back = np.empty(piece.size + 1, np.int32), np.empty(piece.size + 1, np.int32)
    machine.prefix_tree(canon.rules.packed, canon.vocabulary.trie.packed, piece, last, back)
    return last, back


def _read(canon: Canon, lead: Lead, reading: Reading, grown: Growing) -> None:
    """Enter the paths of one reading."""
    chain, end = _closed(canon, lead, reading)
    if lead.border <= end and lead.border not in {0, *(at for _, at in chain)}:
        return
    path = tuple(token for token, at in chain if at > lead.border)
    edges = [0, *(at for _, at in chain)]
    sizes = tuple(b - a for a, b in pairwise(edges) if b > lead.border)
    last, back = _tree(canon, reading)
    size = len(reading.piece)
    for at in range(size + 1):
        way = _way(last, back, at, lead.border - end)
        if way is None:
            continue
        left = int(last[at]) if at else -1
        found = canon.leaves(lead.region, reading.piece, at, left, reading.cuts)
        if found.size:
            number = grown.node(path + way[0], sizes + way[1])
            grown.leaves[number].append(found)
    if canon.segmenter is not None and not lead.region.rest and size:
        _behind(canon, lead, reading, path, sizes, grown)


def _way(last: np.ndarray, back: np.ndarray, at: int, border: int) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Return tokens and sizes from the border (or the piece's begin) to a position; None where no way leads."""
    tokens, sizes = [], []
    while at > max(border, 0):
        if last[at] < 0:
            return None
        tokens.append(int(last[at]))
        sizes.append(at - int(back[at]))
        at = int(back[at])
    return (tuple(tokens[::-1]), tuple(sizes[::-1])) if at == max(border, 0) else None


def _behind(
    canon: Canon, lead: Lead, reading: Reading, path: tuple[int, ...], sizes: tuple[int, ...], grown: Growing
) -> None:
    """Enter the path on which the last piece ends with the prompt and a new one begins."""
    tokens = canon.encode_closed(reading.piece)
    lengths = [len(canon.vocabulary.bytes_of(token) or b"") if token >= 0 else 1 for token in tokens]
    end = lead.begin + sum(len(piece) for piece in reading.closed)
    ends = np.cumsum([end, *lengths]).tolist()
    if lead.border > end and lead.border not in ends or -1 in tokens:
        return
    kept = sum(at <= lead.border for at in ends[1:])
    found = canon.leaves(lead.region, b"", 0, -1, (*reading.cuts, 0))
    if found.size:
        number = grown.node(path + tuple(tokens[kept:]), sizes + tuple(lengths[kept:]))
        grown.leaves[number].append(found)


def _ending(canon: Canon, lead: Lead, grown: Growing) -> None:
    """Enter the path of the prompt as a finished text."""
    chain = list(lead.chain)
    canon.finish(chain, lead.region)
    _finish(chain, lead.border, grown, ())


def _finish(chain: Way, border: int, grown: Growing, leaves: tuple[int, ...]) -> None:
    """Enter a chain that goes through the border; its end is an end of the text, or begins the given leaves."""
    edges = [0, *(at for _, at in chain)]
    if border not in edges or any(token < 0 for token, _ in chain):
        return
    behind = [(token, b - a) for (token, b), a in zip(chain, edges, strict=False) if b > border]
    number = grown.node(tuple(token for token, _ in behind), tuple(size for _, size in behind))
    if leaves:
        grown.leaves[number].append(np.array(leaves, np.int32))
    else:
        grown.ends[number] = True


def _added(canon: Canon, boundary: Boundary, lead: Lead, grown: Growing) -> None:
    """Enter the paths that end before an added token, one that the prompt has begun or one that follows it."""
    added = canon.added
    if not added.contents or lead.region.rest:
        return
    text = b"".join((canon.vocabulary.decode_bytes(t for t, _ in lead.chain), lead.region.text.encode()))
    for opening in [*added.openings(text), len(text)]:
        if opening < lead.border:
            continue
        ids = added.longer(text[opening:])
        chain, region = canon.read(text[:opening].decode())
        canon.finish(chain, region)
        _finish(chain, lead.border, grown, ids)
