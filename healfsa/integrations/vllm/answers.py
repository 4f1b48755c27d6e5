"""OpenAI answers of a request whose prompt was cut: text, usage, echo and stop strings as if it had not been.

In: answers or chunks as vLLM writes them, with token ids. Out: the same, put right, and no longer than was asked for.
Idea: text is made again from the ids behind the owed bytes; nothing else in an answer is touched.
Not here: HTTP, vLLM.
"""

from __future__ import annotations

from typing import Any

import healfsa
from healfsa.errors import UnsupportedFeature
from healfsa.integrations.loop import Writing


def stops_of(stop: Any, owed: bytes) -> tuple[list[str], bool]:
    """Return the stop strings, and whether the engine could meet one inside the owed bytes."""
    stops = [stop] if isinstance(stop, str) else list(stop or ())
    shown = owed.decode("utf-8", "replace")
    return stops, any(text in shown or _overlaps(shown, text) for text in stops)


def _overlaps(shown: str, stop: str) -> bool:
    """Return whether a stop string could begin inside `shown` and end behind it."""
    return any(shown.endswith(stop[:size]) for size in range(1, len(stop)))


def constraint_of(request: Any) -> dict[str, Any] | None:
    """Return the constraint of a request as a description; None where it has none."""
    params = getattr(request, "structured_outputs", None)
    if params is not None:
        return _structured(params)
    wanted: Any = getattr(request, "response_format", None)
    kind = getattr(wanted, "type", "text") if wanted is not None else "text"
    if kind == "text":
        return None
    if kind == "json_object":
        return {"json": {"type": "object"}}
    if kind == "json_schema":
        return {"json": wanted.json_schema.json_schema, "style": "ordered"}
    raise UnsupportedFeature(f"response_format {kind} in a healed request", instead="vllm_xargs {'heal': 'off'}")


def _structured(params: Any) -> dict[str, Any]:
    if getattr(params, "json", None) is not None:
        return {"json": params.json, "style": "ordered"}
    for name in ("regex", "choice"):
        if getattr(params, name, None) is not None:
            return {name: getattr(params, name)}
    if getattr(params, "json_object", None):
        return {"json": {"type": "object"}}
    text = getattr(params, "grammar", None)
    if text is not None:
        return {"gbnf" if "::=" in text else "lark": text}
    raise UnsupportedFeature("a structural tag in a healed request", instead="vllm_xargs {'heal': 'off'}")


class Answer:
    """Puts one request's answers right.

    Parameters
    ----------
    engine : Engine
    boundary : Boundary
        Where the prompt was cut.
    stops : list of str
    echo : str
        The prompt, where it is to be shown in front.
    keep_ids : bool
        Whether the client asked for token ids.
    new : int, optional
        The client's budget; the engine was given room for owed bytes that many tokens spell.
    """

    def __init__(
        self,
        engine: healfsa.Engine,
        boundary: Any,
        stops: list[str],
        echo: str = "",
        *,
        keep_ids: bool = False,
        new: int | None = None,
    ) -> None:
        self._vocabulary = engine.vocabulary
        self._boundary = boundary
        self._stops = stops
        self._echo = echo
        self._keep_ids = keep_ids
        self._new = new
        self._choices: dict[int, Writing] = {}
        self._over: set[int] = set()  # choices that have ended here, whatever else the engine writes

    def whole(self, answer: dict[str, Any]) -> dict[str, Any]:
        """Return a whole answer, put right."""
        for choice in answer.get("choices", ()):
            text = self._text(choice, last=True)
            if "text" in choice:
                choice["text"] = self._echo + text
            elif choice.get("message", {}).get("content") is not None:
                choice["message"]["content"] = text
        return self._usage(answer)

    def chunk(self, event: dict[str, Any]) -> dict[str, Any]:
        """Return one event of a stream, put right; a choice that has ended here is left out from then on."""
        kept = []
        for choice in event.get("choices", ()):
            if choice["index"] in self._over:
                continue
            echo = self._echo if choice["index"] not in self._choices and "text" in choice else ""
            text = self._text(choice, last=choice.get("finish_reason") is not None)
            if "text" in choice:
                choice["text"] = echo + text
            elif (delta := choice.get("delta")) is not None and (text or delta.get("content") is not None):
                delta["content"] = text
            kept.append(choice)
        if "choices" in event:
            event["choices"] = kept
        return self._usage(event)

    def _text(self, choice: dict[str, Any], *, last: bool) -> str:
        writing = self._choices.get(choice["index"])
        if writing is None:
            writing = Writing(self._vocabulary, self._boundary, self._new, self._stops)
            self._choices[choice["index"]] = writing
        text = "".join(map(writing.take, choice.get("token_ids") or ()))
        if writing.reason in ("stop", "length"):
            choice["finish_reason"], choice["stop_reason"] = writing.reason, writing.stopped_by
            self._over.add(choice["index"])
        if last:
            text += writing.end()
        if not self._keep_ids:
            choice["token_ids"] = choice["prompt_token_ids"] = None
        return text

    def _usage(self, answer: dict[str, Any]) -> dict[str, Any]:
        """Count the prompt's ids as the client knows them; those that spell them again are not the answer's."""
        usage = answer.get("usage")
        if usage:
            usage["prompt_tokens"] += self._boundary.n_removed
            if usage.get("completion_tokens") is not None:
                usage["completion_tokens"] = sum(writing.n_own for writing in self._choices.values())
            usage["total_tokens"] = usage["prompt_tokens"] + (usage.get("completion_tokens") or 0)
        return answer
