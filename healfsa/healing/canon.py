"""What is canonical for one vocabulary: rules and pre-tokenizer together.

In: a vocabulary. Out: `Canon`: the open region of a text's end, its readings, and encodings of single pieces.
Idea: a text's end is one *region* behind the last cut that nothing can undo; under each scenario of the learned
    pre-tokenizer the region is some closed pieces and one open piece.  That is one `Reading`; there is mostly one.
Cost: building 1 to 4 s, once a machine and vocabulary, then 20 to 300 ms (`stored.py`); a region some us.
Source: own.
Not here: the decision (`auto.py`), covers and their weights.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from healfsa.healing import kernels_cover as machine
from healfsa.healing import kernels_leaves as branches
from healfsa.healing import stored
from healfsa.healing.completion import Added, Composer, added_of, composer_of
from healfsa.healing.kernels_cuts import ASK
from healfsa.healing.probes import probes_for
from healfsa.healing.recent import Recent
from healfsa.healing.rules import Rules, build_rules
from healfsa.healing.segmenter import Segmenter

if TYPE_CHECKING:
    from healfsa.vocab import Vocabulary


#: Tokens of a text, each with its end in bytes; -1 for a byte that no token makes.
Way = list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Region:
    """The end of a text behind its last certain cut.

    Attributes
    ----------
    text : str
        Its whole characters.
    rest : bytes
        Bytes of an unfinished last character.
    state : int
        State of the segmenter behind `text`.
    """

    text: str
    rest: bytes
    state: int


@dataclass(frozen=True, slots=True)
class Reading:
    """One way in which a region may be cut: closed pieces, then one that is open (empty: it begins at the end).

    `cuts` are the cuts, counted in characters back from the end of the region's text.
    """

    closed: tuple[bytes, ...]
    piece: bytes
    cuts: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Canon:
    """What the tokenizer of a vocabulary would do, without asking it again.

    Attributes
    ----------
    vocabulary : Vocabulary
    rules : Rules
    segmenter : Segmenter or None
        None: the tokenizer has no pre-tokenizer (SentencePiece).
    added : Added
        The added tokens that are text: the tokenizer cuts them out before anything else.
    """

    vocabulary: Vocabulary
    rules: Rules
    segmenter: Segmenter | None
    added: Added
    composer: Composer
    _leaves: Recent = field(default_factory=lambda: Recent(64 << 20))
    _known: list[bool] = field(default_factory=list)
    _kinds: dict[str, int] = field(default_factory=dict)
    _moves: dict[tuple[int, int], tuple[int, tuple[int, ...]]] = field(default_factory=dict)
    _inner: dict[tuple[int, bytes], tuple[tuple[int, ...], ...]] = field(default_factory=dict)

    @property
    def learned(self) -> Segmenter:
        """The segmenter, for callers that know that there is one."""
        return cast(Segmenter, self.segmenter)

    @property
    def tables(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The segmenter's tables as machine code takes them."""
        found = self.segmenter
        return NO_TABLES if found is None else (found.steps, found.scenes, found.classes)

    def kind_of(self, character: str) -> int:
        """Return the class of a character."""
        kind = self._kinds.get(character)
        if kind is None:
            kind = self._kinds[character] = self.learned.class_of(character)
        return kind

    def begin_of_region(self, text: str) -> int:
        """Return where the last certain cut of a text lies, -1 where none is certain."""
        if self.segmenter is None:
            at = int(machine.last_gap(self.rules.packed, np.frombuffer(text.encode(), np.uint8)))
            return at if at < 0 else len(text.encode()[:at].decode())
        certain, kind_of = self.segmenter.is_certain, self.kind_of
        for at in range(len(text) - 1, 0, -1):
            if certain(kind_of(text[at - 1]), kind_of(text[at])):
                return at
        return -1

    def region(self, text: str, rest: bytes = b"") -> Region:
        """Run the segmenter over a text that begins at a certain cut."""
        return self.pieces(text, rest)[1]

    def pieces(self, text: str, rest: bytes = b"") -> tuple[list[bytes], Region]:
        """Return the pieces of a text before its open region, and the region."""
        if self.segmenter is None:
            return [], Region(text, rest, 0)
        state, edges = 0, [0]
        for at, character in enumerate(text):
            key = (state, self.kind_of(character))
            move = self._moves.get(key)
            if move is None:
                move = self._moves[key] = self.learned.step(*key)
            state = move[0]
            for distance in move[1]:
                edges.append(at + 1 - distance)
        pieces = [text[a:b].encode() for a, b in pairwise(edges)]
        return pieces, Region(text[edges[-1] :], rest, state)

    def leaves(self, region: Region, piece: bytes, at: int, left: int, cuts: tuple[int, ...]) -> np.ndarray:
        """Return the tokens that make ``piece[at:]`` and more behind the token `left` (-1: none), int32.

        `cuts` are those of the reading that the piece is the end of.
        """
        trie = self.vocabulary.trie
        node = trie.find(piece[at:])
        room = 0 if node < 0 else int(trie.first[trie.skip[node]] - trie.first[node + 1])
        if room <= MANY:
            return self._new_leaves(region, node, room, at, left, cuts)
        key = (node, region.state, region.rest, cuts, at == 0, left)
        return self._leaves.get(key, lambda: self._new_leaves(region, node, room, at, left, cuts))

    def _new_leaves(
        self, region: Region, node: int, room: int, at: int, left: int, cuts: tuple[int, ...]
    ) -> np.ndarray:
        """Find leaves: by one walk, then by the token before them."""
        if room > MANY and self.segmenter is not None:
            self.know_all()
        out = np.empty(room, np.int32)
        asked, rest, places = np.empty(2, np.int32), np.frombuffer(region.rest, np.uint8), positions(cuts)
        rules, trie = self.rules.packed, self.vocabulary.trie.packed
        while room:
            count = branches.below(rules, trie, *self.tables, node, region.state, rest, places, at == 0, asked, out)
            if count != ASK:
                room = branches.stay_behind(rules, left, out, count) if left >= 0 else count
                break
            self.learned.step(int(asked[0]), self.learned.class_of(chr(asked[1])))
        found = out[:room].copy()
        found.flags.writeable = False
        return found

    def know_all(self) -> None:
        """Learn every character that occurs in a token, once."""
        if not self._known:
            self.learned.learn(sorted(set(self.vocabulary.data.tobytes().decode(errors="ignore"))))
            self._known.append(True)

    def readings(self, region: Region) -> list[Reading]:
        """Return every way in which the region may be cut, depending on what follows."""
        if self.segmenter is None:
            return [Reading((), region.text.encode() + region.rest)]
        size = len(region.text)
        found = []
        for cuts in self._scenarios(region):
            ends = [size - distance for distance in cuts]
            if ends and ends[-1] == size and not region.rest and tuple(cuts[:-1]) in self._scenarios(region):
                continue  # the reading in which the last piece may go on or end here says it all
            starts = [0, *ends]
            closed = tuple(region.text[a:b].encode() for a, b in zip(starts, ends, strict=False))
            found.append(Reading(closed, region.text[starts[-1] :].encode() + region.rest, cuts))
        return found

    def _scenarios(self, region: Region) -> tuple[tuple[int, ...], ...]:
        """Return the sets of cuts that are possible, those that an unfinished character rules out left out."""
        if not region.rest:
            return self.learned.states[region.state].scenarios
        key = (region.state, region.rest)
        if key not in self._inner:
            kinds = {self.kind_of(character) for character in completions(region.rest)}
            found = [cuts for kind in sorted(kinds) for cuts in self.learned.inner_cuts(region.state, kind)]
            self._inner[key] = tuple(dict.fromkeys(found))
        return self._inner[key]

    def read(self, text: str, rest: bytes = b"") -> tuple[Way, Region]:
        """Return the tokens of a text before its open region, and the region; added tokens are cut out first."""
        way: Way = []
        *closed, (last, _) = self.added.split(text)
        for part, token in closed:
            self.finish(way, self._pieces(way, part))
            if token is not None:
                self._append(way, token)
        return way, self._pieces(way, last, rest)

    def _pieces(self, way: Way, text: str, rest: bytes = b"") -> Region:
        """Go on with the way through the pieces of a text; return its open region."""
        pieces, region = self.pieces(text, rest)
        for piece in pieces:
            self.close(way, piece)
        return region

    def finish(self, way: Way, region: Region) -> None:
        """Go on with the way through a region behind which the text ends."""
        cuts = self.learned.states[region.state].row[0] if self.segmenter is not None else ()
        size = len(region.text)
        for low, high in pairwise([0, *(size + at for at in cuts), size]):
            self.close(way, region.text[low:high].encode())

    def close(self, way: Way, piece: bytes) -> None:
        """Go on with the way through a complete piece."""
        for token in self.encode_closed(piece):
            self._append(way, token)

    def _append(self, way: Way, token: int) -> None:
        end = way[-1][1] if way else 0
        way.append((token, end + (len(self.vocabulary.bytes_of(token) or b"") if token >= 0 else 1)))

    def encode(self, text: str) -> list[int]:
        """Return the ids of a whole text (as `Vocabulary.normalize` gives it), read from the left in one pass."""
        way, region = self.read(text)
        self.finish(way, region)
        return [token for token, _ in way]

    def encode_closed(self, piece: bytes) -> list[int]:
        """Return the ids of a piece that is complete."""
        if self.vocabulary.tokenizer.ignore_merges:
            low, high = self.vocabulary.trie.ranks(piece)
            if low < high and self.vocabulary.bytes_of(int(self.vocabulary.trie.order[low])) == piece:
                return [int(self.vocabulary.trie.order[low])]
        return self.rules.encode(piece)


MANY = 64  # candidates from which on all characters of the vocabulary are learned ahead
NO_TABLES = (np.zeros((1, 1, 2), np.int32), np.zeros((1, 1), np.int32), np.zeros(1, np.int16))


def positions(cuts: tuple[int, ...]) -> np.ndarray:
    """Return cuts that are counted back from the end as positions, ascending."""
    return -np.array(cuts, dtype=np.int32)


def completions(rest: bytes) -> list[str]:
    """Return characters, evenly spaced, that begin with the given bytes."""
    missing = 1 + (rest[0] >= 0xE0) + (rest[0] >= 0xF0) + 1 - len(rest)
    low = rest + b"\x80" * missing
    total = 64**missing
    found = []
    for k in range(0, total, max(1, total // 64)):
        tail = bytes(0x80 + ((k >> (6 * (missing - 1 - j))) & 63) for j in range(missing))
        try:
            found.append((rest + tail).decode())
        except UnicodeDecodeError:
            continue
    return found or [low.decode(errors="replace")]


def canon_of(vocabulary: Vocabulary) -> Canon | None:
    """Return the canon of a vocabulary (kept for the last few); None where its tokenizer is no BPE."""
    with _BUILDING:
        return _build(vocabulary)


_BUILDING = threading.Lock()  # threads that want the same canon wait for one of them to build it


@lru_cache(maxsize=16)
def _build(vocabulary: Vocabulary) -> Canon | None:
    key = stored.key_of(vocabulary)
    found = stored.load(key) if key is not None else None
    if found is not None:
        with suppress(KeyError, TypeError, ValueError, IndexError):
            return _restored(vocabulary, *found)
    rules = build_rules(vocabulary)
    if rules is None:
        return None
    canon = Canon(vocabulary, rules, _segmenter(vocabulary), added_of(vocabulary), composer_of(vocabulary))
    if key is not None:
        stored.save(key, _contents(canon))
    return canon


def _contents(canon: Canon) -> stored.Contents:
    """Return what is worth keeping of a canon: its rules, and all that was learned of the pre-tokenizer."""
    arrays = {"packed": canon.rules.packed, "reachable": canon.rules.reachable, "bytes": canon.rules.byte_tokens}
    if canon.segmenter is None:
        return {"segmenter": None}, arrays
    canon.know_all()
    head, learned = canon.segmenter.contents()
    return {"segmenter": head}, arrays | learned


def _restored(vocabulary: Vocabulary, head: dict[str, Any], arrays: dict[str, np.ndarray]) -> Canon:
    """Return the canon with these contents."""
    rules = Rules(arrays["packed"], arrays["reachable"], arrays["bytes"])
    for array in (rules.packed, rules.reachable, rules.byte_tokens):
        array.flags.writeable = False
    segmenter, known = None, []
    if head["segmenter"] is not None:
        tokenizer = vocabulary.tokenizer
        cuts, probes = _cuts_of(tokenizer.pre_tokenize), probes_for(tokenizer.pre_tokenizer)
        segmenter, known = Segmenter.restored(cuts, probes, head["segmenter"], arrays), [True]
    return Canon(vocabulary, rules, segmenter, added_of(vocabulary), composer_of(vocabulary), _known=known)


def _segmenter(vocabulary: Vocabulary) -> Segmenter | None:
    """Learn the pre-tokenizer; None where it never cuts."""
    tokenizer = vocabulary.tokenizer
    cuts = _cuts_of(tokenizer.pre_tokenize)
    if tokenizer.kind == "bpe-sentencepiece" and all(
        not cuts(text) for text in ("a b", "a  b.c", "1 a\nb", "don't A1")
    ):
        return None
    return Segmenter(cuts, probes_for(tokenizer.pre_tokenizer))


def _cuts_of(spans: Callable[[str], list[tuple[int, int]]]) -> Callable[[str], tuple[int, ...]]:
    """Return the function that says where a text is cut."""

    def cuts(text: str) -> tuple[int, ...]:
        ends = {edge for span in spans(text) for edge in span}
        return tuple(sorted(ends - {0, len(text)}))

    return cuts
