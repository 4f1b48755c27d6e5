"""How many tokens a healed row may write.

In: a boundary, a number of new tokens, ids. Out: limits.
Idea: a budget is counted as without healing; what only spells the prompt's own bytes again is free, however many tokens
    that takes. An engine that takes one number is sent the greatest (`most`), and its answer is cut where `limit` says.
Cost: one pass over the first few ids of a row.
Not here: loops (see loop).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any


def spelling(vocabulary: Any, boundary: Any, ids: Iterable[int]) -> int:
    """Return how many of `ids` it takes to write the owed bytes again (all of them where they do not suffice)."""
    count = written = 0
    for token_id in ids:
        if written >= len(boundary.owed):
            break
        written += len(vocabulary.bytes_of(token_id) or b"") if token_id < vocabulary.size else 0
        count += 1
    return count


def limit(vocabulary: Any, boundary: Any, ids: Sequence[int], new: int) -> int:
    """Return how many tokens a row that begins with `ids` may have for `new` tokens of its own."""
    removed = len(boundary.prompt_ids) - len(boundary.keep)
    return new + max(removed, spelling(vocabulary, boundary, ids))


def most(boundary: Any, new: int) -> int:
    """Return the greatest `limit`: every owed byte spelled by a token of its own."""
    return new + max(len(boundary.prompt_ids) - len(boundary.keep), len(boundary.owed))
