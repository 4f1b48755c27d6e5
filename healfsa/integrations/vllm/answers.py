"""OpenAI answers of a request whose prompt was cut: text, usage, echo and stop strings as if it had not been.

In: answers or chunks as vLLM writes them, with token ids. Out: the same, put right.
Idea: text is made again from the ids behind the owed bytes; nothing else in an answer is touched.
Not here: HTTP, vLLM.
"""

from __future__ import annotations

from typing import Any

import healfsa
from healfsa.errors import UnsupportedFeature
from healfsa.healing import TextStream


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
        return {"json": wanted.json_schema.json_schema}
    raise UnsupportedFeature(f"response_format {kind} in a healed request", instead="vllm_xargs {'heal': 'off'}")


def _structured(params: Any) -> dict[str, Any]:
    for name in ("json", "regex", "choice"):
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
    """

    def __init__(
        self, engine: healfsa.Engine, boundary: Any, stops: list[str], echo: str = "", *, keep_ids: bool = False
    ) -> None:
        self._vocabulary = engine.vocabulary
        self._boundary = boundary
        self._stops = stops
        self._echo = echo
        self._keep_ids = keep_ids
        self._streams: dict[int, TextStream] = {}
        self._cut: set[int] = set()

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
        """Return one event of a stream, put right; behind a stop string that was found here choices are left out."""
        kept = []
        for choice in event.get("choices", ()):
            index = choice["index"]
            if index in self._cut:
                continue
            echo = self._echo if index not in self._streams and "text" in choice else ""
            text = self._text(choice, last=choice.get("finish_reason") is not None)
            if "text" in choice:
                choice["text"] = echo + text
            elif (delta := choice.get("delta")) is not None and (text or delta.get("content") is not None):
                delta["content"] = text
            if self._streams[index].stopped_by is not None:
                self._cut.add(index)
            kept.append(choice)
        if "choices" in event:
            event["choices"] = kept
        return self._usage(event)

    def _text(self, choice: dict[str, Any], *, last: bool) -> str:
        stream = self._streams.get(choice["index"])
        if stream is None:
            stream = TextStream.behind(self._vocabulary, self._boundary, self._stops)
            self._streams[choice["index"]] = stream
        ids = choice.get("token_ids") or ()
        text = "".join(stream.push(self._vocabulary.bytes_of(token_id)) for token_id in ids)
        if last:
            text += stream.finish()
        if stream.stopped_by is not None:
            choice["finish_reason"], choice["stop_reason"] = "stop", stream.stopped_by
        if not self._keep_ids:
            choice["token_ids"] = choice["prompt_token_ids"] = None
        return text

    def _usage(self, answer: dict[str, Any]) -> dict[str, Any]:
        """Count the prompt's ids as the client knows them; those that spell them again are not the answer's."""
        usage = answer.get("usage")
        if usage:
            again = min(self._boundary.n_removed * max(1, len(self._streams)), usage.get("completion_tokens") or 0)
            usage["prompt_tokens"] += self._boundary.n_removed
            if usage.get("completion_tokens") is not None:
                usage["completion_tokens"] -= again
            usage["total_tokens"] = usage["prompt_tokens"] + (usage.get("completion_tokens") or 0)
        return answer
