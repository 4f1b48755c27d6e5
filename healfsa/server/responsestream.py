"""The streaming events of /v1/responses, and the response that they add up to.

In: deltas of a chat's choice. Out: events with their numbers.
Idea: one output item is open at a time; a delta of another kind closes it and opens its own.
Source: OpenAI, Responses API, streaming events.
Not here: where deltas come from.
"""

from __future__ import annotations

from typing import Any

from healfsa.server.context import new_id
from healfsa.server.errors import ApiError

Event = dict[str, Any]


class Events:
    """Collects one response; `head` are the fields that stay the same."""

    def __init__(self, head: dict[str, Any]) -> None:
        self._head = head
        self._number = -1
        self._output: list[dict[str, Any]] = []
        self._open: dict[str, Any] | None = None

    def response(self, state: dict[str, Any], usage: dict[str, Any] | None) -> dict[str, Any]:
        """Return the response object as it is now."""
        return {**self._head, "output": list(self._output), "usage": usage, **state}

    def opening(self) -> list[Event]:
        """Return the events that a stream begins with."""
        value = self.response({"status": "in_progress", "incomplete_details": None}, None)
        return [self._event("response.created", response=value), self._event("response.in_progress", response=value)]

    def delta(self, delta: dict[str, Any], scores: list[dict[str, Any]]) -> list[Event]:
        """Return the events of a delta."""
        if delta.get("content"):
            return self._text(delta["content"], scores)
        if "tool_calls" in delta:
            return self._call(delta["tool_calls"][0])
        return []

    def close(self) -> list[Event]:
        """Return the events that end the open item."""
        item, self._open = self._open, None
        if item is None:
            return []
        item["status"] = "completed"
        place = {"item_id": item["id"], "output_index": len(self._output) - 1}
        if item["type"] == "function_call":
            done = self._event("response.function_call_arguments.done", **place, name=item["name"],
                               arguments=item["arguments"])  # fmt: skip
            return [done, self._done(item)]
        part = item["content"][0]
        part_place = self._part_place(item)
        return [
            self._event("response.output_text.done", **part_place, text=part["text"], logprobs=part["logprobs"]),
            self._event("response.content_part.done", **part_place, part=dict(part)),
            self._done(item),
        ]

    def end(self, state: dict[str, Any], usage: dict[str, Any]) -> Event:
        """Return the last event."""
        return self._event(f"response.{state['status']}", response=self.response(state, usage))

    def failed(self, error: ApiError) -> Event:
        """Return the last event of a stream that broke."""
        state = {"status": "failed", "error": {"code": error.code or "server_error", "message": error.message}}
        return self._event("response.failed", response=self.response({**state, "incomplete_details": None}, None))

    def _event(self, kind: str, **fields: Any) -> Event:
        self._number += 1
        return {"type": kind, "sequence_number": self._number, **fields}

    def _done(self, item: dict[str, Any]) -> Event:
        return self._event("response.output_item.done", output_index=len(self._output) - 1, item=dict(item))

    def _begin(self, item: dict[str, Any]) -> list[Event]:
        events = self.close()
        self._open = item
        self._output.append(item)
        shown = {**item, "content": []} if "content" in item else dict(item)
        return [*events, self._event("response.output_item.added", output_index=len(self._output) - 1, item=shown)]

    def _text(self, text: str, scores: list[dict[str, Any]]) -> list[Event]:
        item, events = self._open, []
        if item is None or item["type"] != "message":
            part = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
            item = {"id": new_id("msg_"), "type": "message", "status": "in_progress", "role": "assistant"}
            item["content"] = [part]
            events = self._begin(item)
            events.append(self._event("response.content_part.added", **self._part_place(item), part=dict(part)))
        part = item["content"][0]
        part["text"] += text
        part["logprobs"] = [*part["logprobs"], *scores]
        delta = self._event("response.output_text.delta", **self._part_place(item), delta=text, logprobs=scores)
        return [*events, delta]

    def _part_place(self, item: dict[str, Any]) -> dict[str, Any]:
        return {"item_id": item["id"], "output_index": len(self._output) - 1, "content_index": 0}

    def _call(self, call: dict[str, Any]) -> list[Event]:
        function = call["function"]
        events = []
        if "id" in call:
            item = {"id": new_id("fc_"), "type": "function_call", "status": "in_progress", "call_id": call["id"]}
            events = self._begin({**item, "name": function["name"], "arguments": ""})
        text = function.get("arguments", "")
        opened: Any = self._open
        if text:
            opened["arguments"] += text
            place = {"item_id": opened["id"], "output_index": len(self._output) - 1}
            events.append(self._event("response.function_call_arguments.delta", **place, delta=text))
        return events
