"""Forced text as tokens: what can be appended without asking the model.

In: a matcher. Out: token ids that spell a beginning of its forced bytes.
Idea: what is certain to follow is appended as the tokenizer would have written it behind the tokens so far
    (`healfsa.healing.extend`): the tokens that all encodings of all continuations have in common. So a model that
    writes as its tokenizer does would have written the same, with probability one. The tail that may merge with what
    follows is held back, unless nothing can follow; where the tokens so far are not the tokenizer's own, nothing is
    appended.
Cost: some ten us. Not here: what is forced (automaton).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from healfsa.errors import HealFSAError
from healfsa.healing import extend

if TYPE_CHECKING:
    from healfsa.engine.matcher import Matcher


def forced_tokens(matcher: Matcher) -> list[int]:
    """Return the tokens; see `Matcher.forced_tokens`."""
    data, before = matcher.forced_bytes(), matcher.last_ids()
    if not data or before is None:
        return []
    vocabulary = matcher.index.vocabulary
    try:
        ids = extend(vocabulary, before, data, ends=_ends_behind(matcher, data)).keep[len(before) :]
    except HealFSAError:  # bytes that the tokenizer cannot encode: nothing is lost by asking the model
        return []
    return list(ids[: matcher.validate_tokens(ids)])


def _ends_behind(matcher: Matcher, data: bytes) -> bool:
    """Say whether the text can only end behind the forced bytes."""
    probe = matcher.fork()
    probe.accept_bytes(data)
    return probe.is_accepting and not probe.index.has_next(probe.state)
