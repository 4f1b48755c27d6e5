"""Forced text as tokens: what can be appended without asking the model.

In: a matcher. Out: token ids that spell a beginning of its forced bytes.
Idea: encode the forced bytes as the tokenizer would and cut the result back as healing cuts a prompt: the tail that may
    merge with what follows is held back. Where nothing can follow, nothing is held back.
Cost: one encoding. Not here: what is forced (automaton).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from healfsa.errors import HealFSAError
from healfsa.healing import heal

if TYPE_CHECKING:
    from healfsa.engine.matcher import Matcher


def forced_tokens(matcher: Matcher) -> list[int]:
    """Return the tokens; see `Matcher.forced_tokens`."""
    data = matcher.forced_bytes()
    if not data:
        return []
    vocabulary = matcher.index.vocabulary
    policy = "off" if _ends_behind(matcher, data) else "auto"
    try:
        ids = heal(vocabulary, data, policy, add_special_tokens=False).input_ids
    except HealFSAError:  # bytes that the tokenizer cannot encode: nothing is lost by asking the model
        return []
    if not data.startswith(vocabulary.decode_bytes(ids)):
        return []
    return ids[: matcher.validate_tokens(ids)]


def _ends_behind(matcher: Matcher, data: bytes) -> bool:
    """Say whether the text can only end behind the forced bytes."""
    probe = matcher.fork()
    probe.accept_bytes(data)
    return probe.is_accepting and not probe.index.has_next(probe.state)
