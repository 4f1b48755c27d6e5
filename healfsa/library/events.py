"""What reading an answer yields: calls, and the pieces that they arrive in.

In: facts from the parser. Out: frozen values, with their OpenAI form.
Not here: how they are found (see parser.py).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Call:
    """One call: the tool's name, its arguments as a value and as JSON text, and an id where the format has one."""

    name: str
    arguments: dict[str, Any]
    id: str | None = None
    text: str = ""

    def openai(self, index: int = 0) -> dict[str, Any]:
        """Return the entry of `message.tool_calls`."""
        function = {"name": self.name, "arguments": self.text}
        return {"id": self.id or f"call_{index}", "type": "function", "function": function}


@dataclass(frozen=True, slots=True)
class Parsed:
    """A whole answer; `problem` says where it was not one of the format (what was read until then is kept)."""

    content: str = ""
    reasoning: str = ""
    calls: tuple[Call, ...] = ()
    problem: str = ""

    def openai(self) -> dict[str, Any]:
        """Return the assistant message."""
        calls = [call.openai(index) for index, call in enumerate(self.calls)]
        message: dict[str, Any] = {"role": "assistant", "content": self.content or None}
        if self.reasoning:
            message["reasoning_content"] = self.reasoning
        return message | ({"tool_calls": calls} if calls else {})


@dataclass(frozen=True, slots=True)
class Content:
    """More text of the answer."""

    text: str

    def openai(self) -> dict[str, Any]:
        """Return the `delta` of a chat completion chunk."""
        return {"content": self.text}


@dataclass(frozen=True, slots=True)
class Reasoning:
    """More text of the reasoning."""

    text: str

    def openai(self) -> dict[str, Any]:
        """Return the `delta` of a chat completion chunk."""
        return {"reasoning_content": self.text}


@dataclass(frozen=True, slots=True)
class CallBegin:
    """A call has begun: its number and its tool are known."""

    index: int
    name: str
    id: str | None = None

    def openai(self) -> dict[str, Any]:
        """Return the `delta` of a chat completion chunk."""
        function = {"name": self.name, "arguments": ""}
        call_id = self.id or f"call_{self.index}"
        return {"tool_calls": [{"index": self.index, "id": call_id, "type": "function", "function": function}]}


@dataclass(frozen=True, slots=True)
class Arguments:
    """More JSON text of the arguments of call number `index`; the pieces joined are one JSON object."""

    index: int
    text: str

    def openai(self) -> dict[str, Any]:
        """Return the `delta` of a chat completion chunk."""
        return {"tool_calls": [{"index": self.index, "function": {"arguments": self.text}}]}


@dataclass(frozen=True, slots=True)
class CallEnd:
    """A call is complete."""

    index: int
    call: Call = field(repr=False)

    def openai(self) -> dict[str, Any]:
        """Return an empty `delta`: the end of a call is not told to clients."""
        return {}


Event = Content | Reasoning | CallBegin | Arguments | CallEnd
