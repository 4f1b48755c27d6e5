"""Whole numbers from outside, under the names that this room and the engine use.

Not here: the checks (see healfsa.arguments).
"""

from healfsa.arguments import as_id, as_ids, listed, shown, whole

__all__ = ["as_id", "as_ids", "listed", "shown", "whole"]
