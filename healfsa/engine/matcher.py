"""One request: where it stands in its grammar, step by step.

In: token ids. Out: rows of allowed tokens, verdicts, what is forced.
Idea: the state is an int (and the owed bytes that are left), a function of the tokens accepted so far; the trail of
    states makes taking tokens back a matter of forgetting. A fork shares the trail until one side writes to it. The
    tokens themselves are kept beside it for the only question that needs them: how the tokenizer would go on.
Cost: a token is one dict look-up or one walk over its bytes; a fork copies nothing.
Not here: rows (index), caches and threads (engine). A matcher belongs to one thread at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from healfsa.arguments import as_id, as_ids, listed, shown, whole
from healfsa.engine.bitmask import check_bitmask, fits
from healfsa.engine.forced import forced_tokens
from healfsa.engine.messages import rejection
from healfsa.errors import MaskShapeError, MatcherError, RollbackTooFar, Terminated, TokenRejected, VocabularyError
from healfsa.index import ENDED, REJECTED, Masks

if TYPE_CHECKING:
    import numpy as np

    from healfsa.healing import Boundary

Place = tuple[int, bytes]  # a state and the bytes owed in front of it
NO_TOKEN = -1  # in a matcher's tokens: the beginning, or bytes that were written without a token


class Matcher:
    """Follows one sequence of tokens through a grammar; made by `Engine.matcher`.

    Attributes
    ----------
    index : Index or AnyText
        The compiled grammar.
    prompt : Boundary or None
        The healed prompt that it began with.
    """

    __slots__ = ("_at_once", "_length", "_owed", "_shared", "_state", "_tokens", "_trail", "index", "prompt")

    def __init__(self, index: Masks, state: int, owed: bytes = b"", prompt: Boundary | None = None) -> None:
        self.index = index
        self.prompt = prompt
        self._at_once = prompt is not None and prompt.at_once
        self._trail: list[Place | int] = [(state, owed)]  # ints where nothing is owed
        self._tokens: list[int] = [NO_TOKEN]  # how each of these places was reached
        self._length = 1
        self._shared = False
        self._state, self._owed = state, owed

    # What is allowed.

    def fill_bitmask(self, bitmask: Any, row: int = 0) -> None:
        """Write which tokens are allowed next: bit j of word i is token 32 i + j.

        Parameters
        ----------
        bitmask : np.int32[batch, ceil(V / 32)] or a CPU tensor like it
            Its row `row` is overwritten.
        row : int
            Which row.

        Raises
        ------
        MaskShapeError
            Wrong dtype or shape, or no such row.
        LimitExceeded
            The walk needs more than the engine's limits allow.
        """
        index = self.index
        if not fits(bitmask, row, index.words):
            bitmask, row = check_bitmask(bitmask, row, index.words)
        if self._owed:
            index.fill_owed(bitmask, row, self._state, self._owed, self._at_once)
        else:
            index.fill(bitmask, row, self._state)

    def fill_draft(
        self, token_ids: Sequence[int], bitmask: Any, row: int = 0, parents: Sequence[int] | None = None
    ) -> list[int]:
        """Write the masks of a draft, without advancing: one row for here, then one behind each drafted token.

        Parameters
        ----------
        token_ids : sequence of int
            The drafted tokens: one after the other, or a tree.
        bitmask : np.int32[batch, ceil(V / 32)] or a CPU tensor like it
            Row `row` receives what may come first, row ``row + 1 + k`` what may come behind token k.
        row : int
            The first row.
        parents : sequence of int, optional
            Of a tree: the token before each token, by its place in `token_ids` (-1: none). Parents come first.

        Returns
        -------
        list of int
            The places of the tokens that are allowed where they stand. Rows behind others are all zero.

        Raises
        ------
        MaskShapeError
            The bitmask has too few rows, or `parents` are none; nothing was written.
        VocabularyError
            The ids are no whole numbers; nothing was written.
        """
        ids = as_ids(token_ids)
        before = range(-1, len(ids) - 1) if parents is None else _parents(parents, len(ids))
        bitmask, row = check_bitmask(bitmask, row, self.index.words)
        check_bitmask(bitmask, row + len(ids), self.index.words)
        places: list[Place] = [(self._state, self._owed)]
        self._fill(places[0], bitmask, row)
        for k, token_id in enumerate(ids):
            places.append(self._behind(places[before[k] + 1], token_id))
            self._fill(places[-1], bitmask, row + k + 1)
        return [k for k, place in enumerate(places[1:]) if place[0] != REJECTED]

    def _fill(self, place: Place, bitmask: np.ndarray, row: int) -> None:
        state, owed = place
        if state == REJECTED:
            bitmask[row] = 0
        elif owed:
            self.index.fill_owed(bitmask, row, state, owed, self._at_once)
        else:
            self.index.fill(bitmask, row, state)

    def allowed_row(self) -> np.ndarray:
        """Return which tokens are allowed next as np.int32[ceil(V / 32)], read-only."""
        if self._owed:
            return self.index.row_owed(self._state, self._owed, self._at_once)
        return self.index.row(self._state)

    @property
    def is_accepting(self) -> bool:
        """Whether the text may end here."""
        return not self._owed and self.index.is_accepting(self._state)

    @property
    def is_terminated(self) -> bool:
        """Whether an end-of-text token was accepted.

        No more is accepted then (`Terminated`). The mask still allows the end-of-text tokens, and only these: loops
        that sample from every row of a batch, ended ones too, need one token that is allowed.
        """
        return self._state == ENDED

    @property
    def state(self) -> int:
        """The state of the index; behind the owed bytes, where bytes are owed."""
        return self._state

    @property
    def owed(self) -> bytes:
        """The prompt's bytes that are still to be written."""
        return self._owed

    @property
    def n_accepted(self) -> int:
        """How many tokens were accepted (and not rolled back)."""
        return self._length - 1

    # Tokens.

    def accept_token(self, token_id: int) -> None:
        """Advance by one token.

        Raises
        ------
        TokenRejected
            The grammar does not allow it; the matcher is as it was.
        Terminated
            The text has ended.
        VocabularyError
            There is no such id, or it is no whole number.
        """
        if type(token_id) is not int:
            token_id = as_id(token_id)
        index, state, owed = self.index, self._state, self._owed
        after = None if owed else index.moves.get((state, token_id))
        if after is None and not owed and state != ENDED and 0 <= token_id < index.size:
            after = index.new_move(state, token_id)  # `_after` with fewer calls
        if after is None or after == REJECTED:
            after, owed = self._after((state, owed), token_id)
            if after == REJECTED:
                raise rejection(index, state, self._owed, token_id)
        if owed or self._owed or self._shared or len(self._trail) > self._length:
            self._push(after, owed, token_id)
        else:
            self._trail.append(after)
            self._tokens.append(token_id)
            self._length += 1
            self._state = after

    def accept_tokens(self, token_ids: Iterable[int]) -> None:
        """Advance by several tokens, or by none: when one is rejected the matcher is as it was before the first."""
        before = self._length
        try:
            for token_id in as_ids(token_ids):
                self.accept_token(token_id)
        except BaseException:
            self.rollback(self._length - before)
            raise

    def accept_bytes(self, data: bytes) -> None:
        """Advance by bytes that were written without tokens of their own (counts as one step for `rollback`).

        Raises
        ------
        TokenRejected
            With ``token_id`` -1: the grammar, or the owed bytes, do not allow them.
        Terminated
            The text has ended.
        MatcherError
            They are no bytes.
        """
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise MatcherError(f"bytes are needed, not {shown(data)}", hint="encode a text with .encode()")
        data = bytes(data)
        if self._state == ENDED:
            raise Terminated("the text has ended", hint="use reset() or rollback() to go on")
        n = min(len(data), len(self._owed))
        after = self.index.step(self._state, data[n:])
        if data[:n] != self._owed[:n] or not self.index.is_live(after):
            raise TokenRejected(f"the bytes {data!r} are not allowed here", -1, data)
        self._push(after, self._owed[n:], NO_TOKEN)

    def validate_tokens(self, token_ids: Iterable[int]) -> int:
        """Return how many of the tokens would be accepted, one after the other, without advancing.

        Raises
        ------
        VocabularyError
            The ids are no whole numbers. (One that is not in the vocabulary is not accepted, and no error here.)
        """
        place, count = (self._state, self._owed), 0
        for token_id in as_ids(token_ids):
            place = self._behind(place, token_id)
            if place[0] == REJECTED:
                break
            count += 1
        return count

    def _behind(self, place: Place, token_id: int) -> Place:
        """Return the place behind any token id; `REJECTED` as its state wherever `accept_token` would raise."""
        if place[0] in (ENDED, REJECTED) or not 0 <= token_id < self.index.vocabulary.size:
            return REJECTED, b""
        return self._after(place, token_id)

    def _after(self, place: Place, token_id: int) -> Place:
        """Return the place behind a token, `REJECTED` as its state where it is not allowed."""
        state, owed = place
        if not 0 <= token_id < self.index.vocabulary.size:
            raise VocabularyError(f"token id {token_id} is not in the vocabulary of {self.index.vocabulary.size} ids")
        if state == ENDED:
            raise Terminated("the text has ended", hint="use reset() or rollback() to go on")
        if owed:
            return self.index.advance_owed(state, owed, token_id, self._at_once)
        return self.index.advance(state, token_id), b""

    # The trail.

    def _push(self, state: int, owed: bytes, token_id: int) -> None:
        if self._shared:
            self._trail, self._tokens = self._trail[: self._length], self._tokens[: self._length]
            self._shared = False
        elif len(self._trail) > self._length:
            del self._trail[self._length :], self._tokens[self._length :]
        self._trail.append((state, owed) if owed else state)
        self._tokens.append(token_id)
        self._length += 1
        self._state, self._owed = state, owed

    def rollback(self, n: int = 1) -> None:
        """Take back the last `n` tokens; any number, in constant time.

        Raises
        ------
        RollbackTooFar
            Fewer were accepted (or `n` is negative); the matcher is as it was.
        MatcherError
            `n` is no whole number.
        """
        count = whole(n)
        if count is None:
            raise MatcherError(f"a number of tokens is needed, not {shown(n)}")
        if not 0 <= count < self._length:
            raise RollbackTooFar(count, self._length - 1)
        self._length -= count
        place = self._trail[self._length - 1]
        self._state, self._owed = place if isinstance(place, tuple) else (place, b"")

    def reset(self) -> None:
        """Go back to the place where the matcher began."""
        self.rollback(self._length - 1)

    def fork(self) -> Matcher:
        """Return a matcher at the same place that goes its own way from here."""
        twin = Matcher.__new__(Matcher)
        twin.index, twin.prompt, twin._at_once = self.index, self.prompt, self._at_once
        twin._trail, twin._tokens, twin._length = self._trail, self._tokens, self._length
        twin._state, twin._owed = self._state, self._owed
        twin._shared = self._shared = True
        return twin

    def last_ids(self, most: int = 4096) -> tuple[int, ...] | None:
        """Return the last ids of what was written so far: those of the healed prompt, then those that were accepted.

        None where the last step was `accept_bytes`: which tokens wrote them is not known. Behind such a step they are
        the ids that were accepted since.
        """
        taken = self._tokens[max(1, self._length - most) : self._length]
        if NO_TOKEN in taken:
            return tuple(taken[len(taken) - taken[::-1].index(NO_TOKEN) :]) or None
        before = self.prompt.end if self.prompt is not None and len(taken) < most else ()
        return (*before, *taken)

    # What has no alternative.

    def forced_bytes(self) -> bytes:
        """Return the bytes that every continuation begins with (the owed ones first); empty where there is a choice."""
        return self._owed + self.index.forced(self._state)

    def forced_tokens(self) -> list[int]:
        """Return tokens that can be appended without asking the model.

        They spell a beginning of `forced_bytes` as the tokenizer would have behind the tokens so far (those of the
        healed prompt included); a tail that may merge with what follows is held back. They are not accepted yet.
        """
        return forced_tokens(self)

    def __repr__(self) -> str:
        end = "ended" if self.is_terminated else f"state {self._state}"
        return f"<Matcher {self.n_accepted} tokens, {end}{f', owed {self._owed!r}' if self._owed else ''}>"


def _parents(parents: Sequence[int], n: int) -> list[int]:
    """Return the parents of a draft's tokens; each is -1 or the place of an earlier token."""
    found = listed(parents)
    places = [whole(place) for place in found or ()]
    if found is None or len(places) != n or any(at is None or not -1 <= at < k for k, at in enumerate(places)):
        raise MaskShapeError("wrong parents of the draft", f"{n} places of earlier tokens, or -1", shown(parents))
    return [place for place in places if place is not None]
