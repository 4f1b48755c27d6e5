"""What a longer text may still change before any token is made: added tokens and normalisation.

In: the open region of a prompt. Out: how many bytes at its end are undecided for these reasons.
Idea: a tokenizer cuts its added tokens out of the text first, so a text that ends with the beginning of one may yet
    become it; and a normaliser may compose the last character with a mark that follows.
Cost: a few look-ups; what a character's normalisation does is asked once.
Source: own.
Not here: merges and pre-tokenizers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from healfsa.healing.canon import Canon, Region
    from healfsa.healing.prompt import Prompt


def undecided(canon: Canon, read: Prompt, region: Region) -> int:
    """Return how many bytes at the end are undecided."""
    return 0
