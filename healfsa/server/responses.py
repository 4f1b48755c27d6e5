"""/v1/responses.

In: a request with `input`. Out: a response object, or its streaming events.
Idea: the input items are turned into the messages of a chat, which is run as one; only the shapes differ. Nothing is
    stored: what refers to a stored response is refused.
Source: OpenAI, Responses API.
Not here: chats (chat, chatprompt), the events' bookkeeping (responsestream).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from healfsa.server import shapes, sse
from healfsa.server.catalogue import Served
from healfsa.server.chat import ChatRequest, Choice, jobs_of, prefill_inside
from healfsa.server.chatprompt import read_chat
from healfsa.server.constraints import Constraints, response_format
from healfsa.server.context import Context, new_id, now
from healfsa.server.errors import ApiError, translated
from healfsa.server.exchange import Exchange, counted, gathered, usage
from healfsa.server.fields import Fields
from healfsa.server.job import Finished, Job
from healfsa.server.plan import MOST_LOGPROBS, read_plan
from healfsa.server.responsestream import Events
from healfsa.server.scores import chat_entries
from healfsa.server.streaming import StreamOptions
from healfsa.server.tail import Piece
from healfsa.server.toolfields import Tools, read_tools

_PARTS = frozenset(("input_text", "output_text", "text"))
_SCORES = "message.output_text.logprobs"


@dataclass(frozen=True, slots=True)
class Wanted:
    """A request that was found to be right; `told` are its own fields, which the response repeats."""

    chat: ChatRequest
    told: dict[str, Any]

    @property
    def served(self) -> Served:
        """The model."""
        return self.chat.served

    @property
    def make(self) -> Callable[[Exchange], list[Job]]:
        """Makes the job."""
        return self.chat.make


async def responses(request: Request) -> Response:
    """Answer a request."""
    context: Context = request.app.state.context
    fields = await context.fields(request)
    wanted, exchange = await context.ready(lambda: read(context, fields))
    exchange.submit()
    head = {"id": new_id("resp_"), "object": "response", "created_at": now(), **wanted.told}
    if wanted.chat.stream.wanted:
        return sse.response(_stream(wanted, exchange, head), wanted.chat.headers)
    return JSONResponse(await _whole(wanted, exchange, head, request), headers=wanted.chat.headers)


def read(context: Context, fields: Fields) -> Wanted:
    """Check a request and make ready all that it needs."""
    settings = context.settings
    served = context.served(fields)
    budget = fields.number("max_output_tokens", int, 1, settings.max_tokens)
    plan = read_plan(fields, served, settings, budget, _logprobs(fields))
    if plan.choices != 1:
        raise fields.wrong("n", "can only be 1 here")
    messages = _messages(fields)
    try:
        chat = read_chat(Fields({"messages": messages}))
    except ApiError as failure:  # the client knows no messages
        failure.param = "input"
        raise
    constraint = _constraint(Constraints(settings, served.vocabulary), fields)
    offered = read_tools(fields, served, settings, constraint)
    tools = offered if isinstance(offered, Tools) else None
    inside = prefill_inside(fields, chat)
    template = fields.get("chat_template_kwargs", dict, {})
    stream = StreamOptions(fields.get("stream", bool, False))
    told = _told(fields, served.name, budget)
    headers = context.finish(fields)
    whole = tools.constraint if tools else constraint
    make = jobs_of(context, served, plan, chat, tools, whole, template, inside)
    return Wanted(ChatRequest(served, plan, chat, tools, make, stream, headers), told)


def _logprobs(fields: Fields) -> int | None:
    """Return how many of the likeliest tokens are asked for; `include` asks for log-probabilities at all."""
    include = fields.get("include", list, [])
    for name in include:
        if name != _SCORES:
            raise fields.wrong("include", f"has {name!r}, which is not supported", "unsupported_field")
    n = fields.number("top_logprobs", int, 0, MOST_LOGPROBS)
    return (n or 0) if include or n else None


def _constraint(reader: Constraints, fields: Fields) -> Any:
    """Return the constraint of `text.format`, or of the fields that the other routes have."""
    inner = fields.inner("text")
    made = None
    if inner is not None:
        made = response_format(reader, inner, "format") if inner.has("format") else None
        inner.finish(True)
    other = reader.read(fields)
    if made is not None and other is not None:
        raise ApiError(f"more than one constraint: text.format, {other.param}", param=other.param)
    return made or other


def _messages(fields: Fields) -> list[dict[str, Any]]:
    """Return the input as the messages of a chat."""
    value = fields.raw("input")
    instructions = fields.get("instructions", str)
    found: list[dict[str, Any]] = [{"role": "system", "content": instructions}] if instructions else []
    if isinstance(value, str):
        return [*found, {"role": "user", "content": value}]
    if not isinstance(value, list) or not value:
        raise fields.wrong("input", "must be a string or an array of items")
    for place, item in enumerate(value):
        _add(found, item, f"input[{place}]")
    return found


def _add(found: list[dict[str, Any]], item: Any, path: str) -> None:
    """Append one input item; calls that follow each other are one message."""
    kind = item.get("type", "message") if isinstance(item, dict) else None
    if isinstance(kind, str) and kind in shapes.ITEMS:
        shapes.check(item, shapes.ITEMS[kind], path)
    if kind == "message":
        found.append({**_kept(item, ("role", "prefix")), "content": _text(item.get("content"), path)})
    elif kind == "function_call":
        function = {"name": item.get("name"), "arguments": item.get("arguments")}
        call = {"id": item.get("call_id"), "type": "function", "function": function}
        if found and found[-1].get("tool_calls"):
            found[-1]["tool_calls"].append(call)
        else:
            found.append({"role": "assistant", "content": None, "tool_calls": [call]})
    elif kind == "function_call_output":
        output = _text(item.get("output"), path)
        found.append({"role": "tool", "tool_call_id": item.get("call_id"), "content": output})
    else:
        raise ApiError(f"{path} cannot be read: {kind!r}", param=path, code="unsupported_content")


def _kept(item: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: item[name] for name in names if item.get(name) is not None}


def _text(content: Any, path: str) -> str:
    if isinstance(content, str) or content is None:
        return content or ""
    if not isinstance(content, list) or not all(isinstance(p, dict) and p.get("type") in _PARTS for p in content):
        raise ApiError(f"{path}: only text can be read", param=path, code="unsupported_content")
    if not all(isinstance(part.get("text"), str) for part in content):
        raise ApiError(f"{path}: a part must have a text", param=path)
    return "".join(part["text"] for part in content)


def _told(fields: Fields, name: str, budget: int | None) -> dict[str, Any]:
    """Return the fields that a response repeats."""
    return {
        "model": name,
        "instructions": fields.raw("instructions"),
        "max_output_tokens": budget,
        "metadata": fields.get("metadata", dict, {}),
        "parallel_tool_calls": fields.get("parallel_tool_calls", bool, True),
        "previous_response_id": None,
        "store": False,
        "temperature": fields.get("temperature", float, 1.0),
        "text": fields.raw("text") or {"format": {"type": "text"}},
        "tool_choice": fields.raw("tool_choice") or "auto",
        "tools": fields.raw("tools") or [],
        "top_p": fields.get("top_p", float, 1.0),
        "truncation": "disabled",
        "error": None,
    }


def _status(finished: Finished) -> dict[str, Any]:
    if finished.reason == "length":
        return {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    return {"status": "completed", "incomplete_details": None}


def _usage(exchange: Exchange, counts: dict[tuple[int, int], int]) -> dict[str, Any]:
    found = usage(exchange, counts)
    return {
        "input_tokens": found["prompt_tokens"], "input_tokens_details": found["prompt_tokens_details"],
        "output_tokens": found["completion_tokens"], "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": found["total_tokens"],
    }  # fmt: skip


def _entries(wanted: ChatRequest, tokens: Any) -> list[dict[str, Any]]:
    n = wanted.plan.sampling.logprobs
    return [] if n is None else chat_entries(wanted.served.vocabulary, tokens, n)


async def _whole(wanted: Wanted, exchange: Exchange, head: dict[str, Any], request: Request) -> dict[str, Any]:
    """Return the response object; it is made of the same events that a stream would have."""
    answers = await gathered(exchange, request)
    answer = answers.choices[0][0]
    events = Events(head)
    choice = Choice(wanted.chat)
    for piece in answer.pieces:
        _feed(wanted, events, choice, piece)
    finished = answer.finished or Finished("stop")
    for delta in choice.rest():
        events.delta(delta, [])
    events.close()
    return events.response(_status(finished), _usage(exchange, counted(answers)))


def _feed(wanted: Wanted, events: Events, choice: Choice, piece: Piece) -> list[dict[str, Any]]:
    scores = _entries(wanted.chat, piece.tokens)
    found = []
    for place, delta in enumerate(choice.deltas(piece)):
        found += events.delta(delta, scores if place == 0 else [])
    return found


async def _stream(wanted: Wanted, exchange: Exchange, head: dict[str, Any]) -> AsyncIterator[str]:
    events = Events(head)
    choice = Choice(wanted.chat)
    for first in events.opening():
        yield sse.named(first)
    try:
        async for _, _, event in exchange.events():
            if isinstance(event, Piece):
                for made in _feed(wanted, events, choice, event):
                    yield sse.named(made)
            elif isinstance(event, Finished):
                counts = {(0, 0): event.tokens}
                for made in [e for delta in choice.rest() for e in events.delta(delta, [])] + events.close():
                    yield sse.named(made)
                yield sse.named(events.end(_status(event), _usage(exchange, counts)))
    except Exception as failure:
        yield sse.named(events.failed(translated(failure)))
