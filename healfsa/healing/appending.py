"""Text that is certain to follow: which tokens it makes, and what of it must wait.

In: token ids and bytes that follow them. Out: `Boundary`: the ids with canonical ones appended, and what is held back.
Idea: bytes that follow for certain are like the end of a prompt: what all their encodings have in common is appended.
Cost: that of `heal`, and reading the bytes once.
Source: own.
Not here: what is forced (the automaton), when to append (the engine).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from healfsa.arguments import as_ids
from healfsa.healing.boundary import Boundary
from healfsa.healing.canon import canon_of
from healfsa.healing.paths import finished, settled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from healfsa.vocab import Vocabulary


def extend(vocabulary: Vocabulary, ids: Sequence[int], data: bytes, *, ends: bool = False) -> Boundary:
    """Append text that is certain to follow, as the tokenizer would have written it.

    Parameters
    ----------
    vocabulary : Vocabulary
    ids : sequence of int
        What the model has read; none of it is changed.
    data : bytes
        What follows.
    ends : bool
        Whether the text ends behind `data`, so that nothing has to wait.

    Returns
    -------
    Boundary
        ``keep`` begins with `ids`; ``owed`` are the bytes that may still merge with what follows them (all of `data`
        where the tokenizer would have merged its beginning with the last of `ids`).
    """
    before, canon = ids if isinstance(ids, tuple) else tuple(as_ids(ids)), canon_of(vocabulary)
    cut = Boundary(before, data)
    if canon is None:
        return cut
    way = finished(canon, cut) if ends else settled(canon, cut)
    if not way or any(token < 0 for token, _ in way):
        return cut
    return Boundary((*before, *(token for token, _ in way)), data[way[-1][1] :])
