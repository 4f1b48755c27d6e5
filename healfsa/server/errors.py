"""Failures in OpenAI's shape.

In: an exception of the error tree. Out: a status and `{"error": {"message", "type", "param", "code"}}`.
Idea: every refusal is raised as `ApiError` with the field that caused it; failures of the library are translated once,
    here. What went wrong inside is never told to clients: they get a fixed sentence, the log gets the rest.
Not here: deciding what is refused.
"""

from __future__ import annotations

import logging
from typing import Any

from healfsa.errors import (
    GrammarError,
    HealFSAError,
    IncompatibleVocabulary,
    LimitExceeded,
    PromptError,
    VocabularyError,
)

log = logging.getLogger("healfsa.server")

INVALID = "invalid_request_error"
MOST_MESSAGE, MOST_PARAM = 2000, 200  # characters; what a request spells is repeated in its refusal only so far


class ApiError(HealFSAError):
    """A refusal, ready to be sent.

    Attributes
    ----------
    status : int
        HTTP status.
    kind : str
        OpenAI's `type`.
    param : str or None
        The field that caused it.
    code : str or None
        A short word for programs.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int = 400,
        kind: str = INVALID,
        param: str | None = None,
        code: str | None = None,
        hint: str = "",
    ) -> None:
        super().__init__(message, hint=hint)
        self.status = status
        self.kind = kind
        self.param = param
        self.code = code

    def body(self) -> dict[str, Any]:
        """Return the JSON value to send."""
        param = None if self.param is None else _clipped(self.param, MOST_PARAM)
        error = {"message": _clipped(str(self), MOST_MESSAGE), "type": self.kind, "param": param, "code": self.code}
        return {"error": error}


def _clipped(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 4] + " ..."


def busy(waiting: int) -> ApiError:
    """Return the refusal of a full queue."""
    return ApiError(f"the server is busy: {waiting} requests are waiting", status=429, kind="rate_limit_error",
                    code="queue_full", hint="try again in a moment")  # fmt: skip


def too_late(seconds: float) -> ApiError:
    """Return the end of a request that took too long."""
    return ApiError(f"the request took longer than {seconds:g} s", status=504, kind="timeout_error", code="timeout")


def closing() -> ApiError:
    """Return the refusal of a server that is going down."""
    return ApiError("the server is shutting down", status=503, kind="server_error", code="shutting_down")


def broken() -> ApiError:
    """Return what clients are told of a failure inside."""
    return ApiError("the server had an error while it worked on this request", status=500, kind="server_error",
                    code="internal_error")  # fmt: skip


_CODES: tuple[tuple[type[HealFSAError], str], ...] = (
    (IncompatibleVocabulary, "incompatible_vocabulary"),
    (GrammarError, "invalid_grammar"),
    (LimitExceeded, "grammar_too_costly"),
    (PromptError, "prompt_contradicts_grammar"),
    (VocabularyError, "invalid_tokens"),
)


def translated(failure: BaseException, param: str | None = None) -> ApiError:
    """Return the `ApiError` for any failure; unknown ones are logged and hidden."""
    if isinstance(failure, ApiError):
        return failure
    for kind, code in _CODES:
        if isinstance(failure, kind):
            hint = "" if isinstance(failure, LimitExceeded) else failure.hint
            return ApiError(failure.message, param=param, code=code, hint=hint)
    log.error("a request failed", exc_info=failure)
    return broken()
