"""Making and enlarging the arena.

In: how much is there, which region is full. Out: a new int32 array with everything at its new place.
Idea: regions only move here, between kernel calls; sizes at least double, so copying costs O(1) a word in the long run.
    The old array stays valid for whoever still reads it. Room costs addresses, but next to nothing before it is used
    (the system gives zeroed pages when they are touched, 0.3 to 2 µs a kilobyte), so there is much of it; copies touch
    what is used.
Cost: one copy of what is used.
Not here: what the regions hold (kernels_memory).
"""

from __future__ import annotations

import contextlib
import mmap
import sys
from functools import lru_cache
from pathlib import Path

import numpy as np

from healfsa.automaton import kernels_memory as km
from healfsa.automaton.kernels_compile import as_words
from healfsa.errors import LimitExceeded
from healfsa.limits import Limits

FUEL = 1 << 22  # nodes derived before a kernel comes back to look at the clock
FIRST_ROWS = 2048  # words for rows before the first enlargement where memory is short
FIRST_SLOTS = 1024  # of the hash table that are used; of its room a table uses more and more (see `intern`)
SHORT = {"nodes": 1, "pool": 1, "work": 1, "rows": 1}  # how many times as much room where memory is short,
SPACIOUS = {"nodes": 8, "pool": 32, "work": 8, "rows": 128}  # and where not: 2 MB for a usual schema
LARGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")
LARGE = 1 << 15  # words: below, a new array is memory that was used before, and is cleared in no time
MANY = 1 << 11  # words: fewer are touched as they are written
POPULATE_WRITE = 23  # Linux's number of an advice that the module mmap has no name for
SMALL = 1 << 20  # words: added to a program's in the question whether memory is short
TIMES = {"nodes": 4, "pool": 8, "rows": 32}  # how many times as much room a region that is full gets
PARTS = 16  # nodes derived that count as one state of a search

# region: header word of its offset, of its room, words a unit
REGIONS = {
    "rules": (km.RULES, km.RULES_ROOM, km.RULE),
    "work": (km.WORK, km.WORK_ROOM, 1),
    "nodes": (km.NODES, km.NODES_ROOM, km.NODE),
    "pool": (km.POOL, km.POOL_ROOM, 1),
    "rows": (km.ROWS, km.ROWS_ROOM, 0),
}
USED = {
    "rules": km.RULES_USED,
    "work": km.WORK_USED,
    "nodes": km.NODES_USED,
    "pool": km.POOL_USED,
    "rows": km.ROWS_USED,
}


def words_of_set(spellable: frozenset[int] | None) -> np.ndarray:
    """Return a set of bytes as int32[8]."""
    bits = (1 << 256) - 1 if spellable is None else sum(1 << b for b in spellable)
    return np.frombuffer(bits.to_bytes(32, "little"), dtype=np.int32)


def power_above(n: int) -> int:
    """Return the least power of two that is at least `n`."""
    return 1 << max(n - 1, 1).bit_length()


def new_memory(program: np.ndarray, limits: Limits, spellable: frozenset[int] | None, n_specials: int) -> np.ndarray:
    """Return an empty arena with room for a program."""
    size, values = len(program), int(program[0])
    times = SPACIOUS if limits.bytes > 64 * (size + SMALL) else SHORT
    room = {
        "nodes": times["nodes"] * power_above(2 * values + 100),
        "pool": size + times["pool"] * (2 * values + 500),
        "rules": int(program[3]) + 2,
        "work": size + 3 * values + times["work"] * 1100,
        "rows": times["rows"] * FIRST_ROWS,
    }
    return lay_out(_first_header(limits.depth, limits.search, spellable, n_specials), room, 1, limits, "load")


@lru_cache(maxsize=64)
def _first_header(depth: int, search: int, spellable: frozenset[int] | None, n_specials: int) -> np.ndarray:
    header = np.zeros(km.HEADER, dtype=np.int32)
    header[km.DEPTH_LIMIT], header[km.FUEL] = depth, FUEL
    header[km.SEARCH_LIMIT] = min(search * PARTS, 1 << 30)
    header[km.SPECIALS] = n_specials
    header[km.SPELLABLE : km.SPELLABLE + 8] = words_of_set(spellable)
    header.flags.writeable = False
    return header


def used(memory: np.ndarray) -> int:
    """Return how many words of an arena are used, its table included."""
    width = int(memory[km.WIDTH])
    words = sum(int(memory[USED[name]]) * (width if name == "rows" else unit) for name, (_, _, unit) in REGIONS.items())
    return km.HEADER + words + int(memory[km.TABLE_MASK]) + 1


def zeroed(n: int) -> np.ndarray:
    """Return int32[n], all zero; a large one is made of pages that cost nothing before they are touched.

    Small pages: of large ones a grammar would fill a tenth, and their first touch can take milliseconds.
    """
    if n < LARGE:
        return np.zeros(n, dtype=np.int32)
    private = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}
    try:
        pages = mmap.mmap(-1, 4 * n, **private)
    except OSError:  # too many maps
        return np.zeros(n, dtype=np.int32)
    if _large_pages_come_unasked():
        pages.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(pages, dtype=np.int32)


@lru_cache(maxsize=1)
def _large_pages_come_unasked() -> bool:
    """Say whether the system makes large pages of memory that nobody asked to have them."""
    try:
        return "[always]" in LARGE_PAGES.read_text() and hasattr(mmap, "MADV_NOHUGEPAGE")
    except OSError:  # a system without large pages, or without a name for them
        return False


def lay_out(header: np.ndarray, room: dict[str, int], width: int, limits: Limits, stage: str) -> np.ndarray:
    """Return a zeroed arena with this header and these rooms."""
    at, table = km.HEADER, 2 * power_above(room["nodes"])
    slots = max(int(header[km.TABLE_MASK]) + 1, FIRST_SLOTS)
    words = {km.TABLE: at, km.TABLE_MASK: min(slots, table) - 1, km.TABLE_ROOM: table, km.WIDTH: width}
    at += table
    for name, (offset, rooms, unit) in REGIONS.items():
        words[offset], words[rooms] = at, room[name]
        at += room[name] * (width if name == "rows" else unit)
    if at * 4 > limits.bytes:
        raise LimitExceeded("bytes", at * 4, limits.bytes, stage)
    memory = zeroed(at)
    memory[: km.HEADER] = header
    written = memory.data  # quicker, word by word, than the array
    for word, value in words.items():
        written[word] = value
    return as_words(memory)


def enlarge(memory: np.ndarray, limits: Limits, region: str, stage: str) -> np.ndarray:
    """Return a larger copy of the arena.

    Parameters
    ----------
    region : str
        The region that is full, or "classes": the byte classes have changed, so all rows start again.
    """
    room = {name: int(memory[rooms]) for name, (_, rooms, _) in REGIONS.items()}
    width = int(memory[km.CLASSES] + memory[km.SPECIALS])
    if region == "classes":
        room["rows"] = max(room["rows"], 64)
    else:
        # Growing copies, so it is done seldom: most of the steps that took milliseconds were copies.
        for name, many in TIMES.items():
            words = many * room[name] * (width if name == "rows" else REGIONS[name][2])
            if 16 * words < limits.bytes and (name == region or 4 * int(memory[USED[name]]) > room[name]):
                room[name] *= many
        if room[region] == int(memory[REGIONS[region][1]]):
            room[region] *= 2
        if region in ("pool", "work", "rules"):
            room[region] += max(int(memory[km.DETAIL]), 0)
    for name, allowed in (("nodes", limits.nodes), ("rows", limits.states)):
        if int(memory[USED[name]]) >= allowed:
            word = "nodes" if name == "nodes" else "states"
            raise LimitExceeded(word, int(memory[USED[name]]) + 1, allowed, stage)
        room[name] = min(room[name], allowed)
    larger = lay_out(memory[: km.HEADER], room, width, limits, stage)
    _copy(memory, larger, [name for name in REGIONS if name != "rows" or region != "classes"])
    if region == "classes":
        larger[km.ROWS_USED] = 0
        nodes, n_nodes = int(larger[km.NODES]), int(larger[km.NODES_USED])
        larger[nodes + km.ROW : nodes + n_nodes * km.NODE : km.NODE] = -1
    _copy_table(memory, larger)
    return larger


def twin(memory: np.ndarray) -> np.ndarray:
    """Return a copy of the arena; the room that is not used is not touched."""
    other = zeroed(len(memory))
    other[: km.HEADER] = memory[: km.HEADER]
    _copy(memory, other, list(REGIONS))
    _copy_table(memory, other)
    return as_words(other)


def _copy(memory: np.ndarray, other: np.ndarray, names: list[str]) -> None:
    """Copy what is used of some regions to their places in `other`; nobody needs the work stack between calls."""
    for name in names:
        if name != "work":
            offset, _, unit = REGIONS[name]
            words = int(memory[USED[name]]) * (int(memory[km.WIDTH]) if name == "rows" else unit)
            old, new = int(memory[offset]), int(other[offset])
            _touch(other, new, words)
            other[new : new + words] = memory[old : old + words]


def _touch(memory: np.ndarray, at: int, words: int) -> None:
    """Let the system make the pages of so many words at once where it can: one by one they cost three times as much."""
    pages = memory.base.obj if isinstance(memory.base, memoryview) else None
    if isinstance(pages, mmap.mmap) and words > MANY and sys.platform == "linux":
        start = 4 * at & -mmap.PAGESIZE
        with contextlib.suppress(OSError):  # a system that does not know how
            pages.madvise(POPULATE_WRITE, start, 4 * (at + words) - start)


def _copy_table(memory: np.ndarray, other: np.ndarray) -> None:
    old, new, size = int(memory[km.TABLE]), int(other[km.TABLE]), int(memory[km.TABLE_MASK]) + 1
    other[new : new + size] = memory[old : old + size]
