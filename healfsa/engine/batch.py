"""Many requests at once: one call a step.

In: matchers, one a row (None: a row without a grammar). Out: a filled bitmask, verdicts a row.
Idea: rows are independent: what goes wrong in one is reported for that one, and the others are filled all the same.
Not here: the matchers' own rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from healfsa.arguments import listed, shown
from healfsa.engine.bitmask import check_bitmask
from healfsa.engine.matcher import Matcher
from healfsa.errors import HealFSAError, MaskShapeError, MatcherError


class Batch:
    """Matchers that are filled and advanced together.

    Parameters
    ----------
    matchers : sequence of Matcher or None
        One a row; None allows every token. All over one vocabulary.

    Raises
    ------
    MatcherError
        Something among them is no matcher.
    MaskShapeError
        They are over several vocabularies.
    """

    __slots__ = ("matchers",)

    def __init__(self, matchers: Sequence[Matcher | None]) -> None:
        found = listed(matchers)
        if found is None:
            raise MatcherError(f"a batch is made of a sequence of matchers, not {shown(matchers)}")
        for matcher in found:
            if matcher is not None and not isinstance(matcher, Matcher):
                raise MatcherError(f"a batch is made of matchers, not {shown(matcher)}")
        self.matchers: list[Matcher | None] = found
        widths = {matcher.index.vocabulary.size for matcher in self.matchers if matcher is not None}
        if len(widths) > 1:
            raise MaskShapeError("the matchers of a batch must share one vocabulary", "one size", sorted(widths))

    def fill_bitmask(self, bitmask: Any, rows: Sequence[int] | None = None) -> list[HealFSAError | None]:
        """Fill one row a matcher.

        Parameters
        ----------
        bitmask : np.int32[batch, ceil(V / 32)] or a CPU tensor like it
            What is written.
        rows : sequence of int, optional
            Row of each matcher; by default its place in the batch.

        Returns
        -------
        list of HealFSAError or None
            What went wrong, by matcher. The row of a failed matcher allows only end-of-text tokens.

        Raises
        ------
        MaskShapeError
            The bitmask or the rows do not fit; nothing was written.
        """
        given = list(range(len(self.matchers))) if rows is None else listed(rows)
        if given is None or len(given) != len(self.matchers):
            got = shown(rows) if given is None else len(given)
            raise MaskShapeError("wrong number of rows", f"{len(self.matchers)} (one a matcher)", got)
        array, places = self._check(bitmask, given)
        return [self._fill(array, row, matcher) for row, matcher in zip(places, self.matchers, strict=True)]

    def _check(self, bitmask: Any, given: list[Any]) -> tuple[np.ndarray, list[int]]:
        """Return the bitmask as an array and the rows as ints; a bitmask without a grammar may have any width."""
        first = next((matcher for matcher in self.matchers if matcher is not None), None)
        words = None if first is None else first.index.words
        array, places = bitmask, []
        for row in given:
            array, place = check_bitmask(bitmask, row, words)
            places.append(place)
        return array, places

    def _fill(self, array: np.ndarray, row: int, matcher: Matcher | None) -> HealFSAError | None:
        if matcher is None:
            array[row] = -1
            return None
        try:
            matcher.fill_bitmask(array, row)
        except HealFSAError as error:
            array[row] = 0
            for token in matcher.index.vocabulary.eos_ids:
                array[row].view(np.uint32)[token >> 5] |= np.uint32(1 << (token & 31))
            return error
        return None

    def accept_tokens(self, token_ids: Iterable[int]) -> list[HealFSAError | None]:
        """Advance each matcher by its own token; a matcher that refuses stays as it was. Returns the errors, by row.

        Raises
        ------
        MatcherError
            There are more or fewer tokens than matchers; none was accepted.
        """
        tokens = listed(token_ids)
        if tokens is None or len(tokens) != len(self.matchers):
            got = shown(token_ids) if tokens is None else f"{len(tokens)} tokens"
            raise MatcherError(f"{got} for {len(self.matchers)} matchers", hint="give one token a matcher")
        return [self._accept(matcher, token) for matcher, token in zip(self.matchers, tokens, strict=True)]

    def _accept(self, matcher: Matcher | None, token_id: int) -> HealFSAError | None:
        try:
            if matcher is not None:
                matcher.accept_token(token_id)
        except HealFSAError as error:
            return error
        return None
