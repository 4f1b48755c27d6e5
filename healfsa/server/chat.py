"""/v1/chat/completions.

In: a request with `messages`. Out: an answer or a stream, in OpenAI's shape.
Idea: the text of a choice either is the message's content, or is read by the tools' reader, which tells content from
    calls; both speak in deltas.
Not here: prompts (chatprompt), tools (toolfields).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from healfsa.library import Arguments, CallBegin, Content, Reasoning
from healfsa.library.events import Event
from healfsa.server import sse
from healfsa.server.catalogue import Served
from healfsa.server.chatprompt import Chat, chat_prompt, read_chat
from healfsa.server.constraints import Constraint, Constraints
from healfsa.server.context import Context, new_id, now
from healfsa.server.covers import covers_of
from healfsa.server.errors import ApiError
from healfsa.server.exchange import Exchange, counted, counts_of, gathered, usage
from healfsa.server.fields import Fields
from healfsa.server.job import Finished, Job
from healfsa.server.plan import MOST_LOGPROBS, Plan, compiled, healed, make_job, read_plan
from healfsa.server.scores import chat_entries
from healfsa.server.streaming import StreamOptions, read_stream
from healfsa.server.tail import Piece
from healfsa.server.toolfields import CallReader, Tools, read_tools

_RESERVED = frozenset(  # what a tokenizer takes beside a template's own variables
    """messages conversation tools documents chat_template add_generation_prompt continue_final_message tokenize padding
    truncation max_length return_tensors return_dict return_assistant_tokens_mask tokenizer_kwargs""".split()
)


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A request that was found to be right."""

    served: Served
    plan: Plan
    chat: Chat
    tools: Tools | None
    make: Callable[[Exchange], list[Job]]
    stream: StreamOptions
    headers: dict[str, str]
    echo: bool = False

    @property
    def begun(self) -> str:
        """The text that an answer is shown to begin with."""
        return self.chat.begun if self.echo else ""


async def chat_completions(request: Request) -> Response:
    """Answer a request."""
    context: Context = request.app.state.context
    fields = await context.fields(request)
    wanted, exchange = await context.ready(lambda: read(context, fields))
    exchange.submit()
    head = {"id": new_id("chatcmpl-"), "created": now(), "model": wanted.served.name, "system_fingerprint": None}
    if wanted.stream.wanted:
        return sse.response(sse.guarded(_stream(wanted, exchange, head)), wanted.headers)
    return JSONResponse(await _whole(wanted, exchange, head, request), headers=wanted.headers)


def read(context: Context, fields: Fields) -> ChatRequest:
    """Check a request and make ready all that it needs."""
    settings = context.settings
    served = context.served(fields)
    plan = read_plan(fields, served, settings, _budget(fields, settings), _logprobs(fields))
    chat = read_chat(fields)
    echo = fields.get("echo", bool, False)
    constraint = Constraints(settings, served.vocabulary).read(fields)
    offered = read_tools(fields, served, settings, constraint)
    tools = offered if isinstance(offered, Tools) else None
    template = fields.get("chat_template_kwargs", dict, {})
    inside = prefill_inside(fields, chat)
    stream = read_stream(fields)
    headers = context.finish(fields)
    whole = tools.constraint if tools else constraint
    make = jobs_of(context, served, plan, chat, tools, whole, template, inside)
    return ChatRequest(served, plan, chat, tools, make, stream, headers, echo)


def jobs_of(
    context: Context,
    served: Served,
    plan: Plan,
    chat: Chat,
    tools: Tools | None,
    constraint: Constraint | None,
    template: dict[str, Any],
    inside: str,
) -> Callable[[Exchange], list[Job]]:
    """Return what makes the job of a chat; grammars are compiled and the prompt is cut now."""
    reserved = _RESERVED & set(template)
    if reserved:
        raise ApiError(f"chat_template_kwargs cannot set {min(reserved)}", param="chat_template_kwargs")
    prompt = chat_prompt(served, chat, tools.listed if tools else [], template, inside if constraint else None)
    index = compiled(served, constraint, context.metrics)
    boundary = healed(served, prompt, plan, context.metrics)
    covers = covers_of(served.engine, boundary, index, "exact" in served.offers)
    shown = tools.shown if tools else None
    grammar = constraint.grammar if constraint else None

    def make(exchange: Exchange) -> list[Job]:
        job = make_job(served, plan, context.settings, prompt, boundary, index, exchange.sink(0),
                       grammar=grammar, shown=shown, covers=covers)  # fmt: skip
        return [job]

    return make


def _budget(fields: Fields, settings: Any) -> int | None:
    names = [name for name in ("max_completion_tokens", "max_tokens") if fields.has(name)]
    if len(names) == 2 and fields.raw(names[0]) != fields.raw(names[1]):
        raise fields.wrong("max_tokens", "and max_completion_tokens differ")
    return fields.number(names[-1], int, 1, settings.max_tokens) if names else None


def _logprobs(fields: Fields) -> int | None:
    wanted = fields.get("logprobs", bool, False)
    n = fields.number("top_logprobs", int, 0, MOST_LOGPROBS)
    if n and not wanted:
        raise fields.wrong("top_logprobs", "needs logprobs: true")
    return (n or 0) if wanted else None


def prefill_inside(fields: Fields, chat: Chat) -> str:
    """Return the part of the begun answer that lies inside the grammar: all of it, unless `prefill` says less."""
    given = fields.raw("prefill")
    if given is None or given is True:
        return chat.begun
    if given is False:
        return ""
    if not isinstance(given, str) or not chat.begun.endswith(given):
        raise fields.wrong("prefill", "must be true, false, or the end of the begun answer")
    return given


class Choice:
    """One choice: its text becomes deltas, and the deltas become a message."""

    def __init__(self, wanted: ChatRequest) -> None:
        self._reader: CallReader | None = wanted.tools.reader(wanted.chat.begun) if wanted.tools else None
        self._gap = ""  # white space that is content only if more content follows
        self.n_calls = 0

    def deltas(self, piece: Piece) -> list[dict[str, Any]]:
        """Return the deltas of a piece."""
        if self._reader is None:
            return [{"content": piece.text}] if piece.text else []
        return self._told(self._reader.feed(piece.text))

    def rest(self) -> list[dict[str, Any]]:
        """Return the deltas that only the end made certain."""
        if self._reader is None:
            return []
        found = self._told(self._reader.finish())
        return found if self.n_calls or not self._gap else [*found, {"content": self._gap}]

    def _told(self, events: list[Event]) -> list[dict[str, Any]]:
        return [delta for event in events if (delta := self._delta(event))]

    def _delta(self, event: Event) -> dict[str, Any]:
        if isinstance(event, CallBegin) and self._reader:
            self.n_calls, self._gap = event.index + 1, ""
            delta = event.openai()
            delta["tool_calls"][0]["id"] = self._reader.call_id(event.index, event.id)
            return delta
        if isinstance(event, Content):
            self._gap += event.text
            if self._gap.isspace():
                return {}
            text, self._gap = self._gap, ""
            return {"content": text}
        return event.openai() if isinstance(event, (Arguments, Reasoning)) else {}

    def reason(self, finished: Finished) -> str:
        """Return the finish reason."""
        return "tool_calls" if self.n_calls and finished.reason == "stop" else finished.reason


def message(begun: str, deltas: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the message that deltas add up to."""
    made: dict[str, Any] = {"role": "assistant", "content": begun, "refusal": None}
    calls: list[dict[str, Any]] = []
    for delta in deltas:
        made["content"] += delta.get("content", "")
        if "reasoning_content" in delta:
            made["reasoning_content"] = made.get("reasoning_content", "") + delta["reasoning_content"]
        for part in delta.get("tool_calls", ()):
            if "id" in part:
                calls.append({"id": part["id"], "type": "function", "function": dict(part["function"])})
            else:
                calls[part["index"]]["function"]["arguments"] += part["function"]["arguments"]
    if calls:
        made |= {"content": made["content"] or None, "tool_calls": calls}
    return made


def _scored(wanted: ChatRequest, tokens: Any) -> dict[str, Any] | None:
    n = wanted.plan.sampling.logprobs
    return None if n is None else {"content": chat_entries(wanted.served.vocabulary, tokens, n), "refusal": None}


async def _whole(wanted: ChatRequest, exchange: Exchange, head: dict[str, Any], request: Request) -> dict[str, Any]:
    answers = await gathered(exchange, request)
    choices = []
    for number, answer in enumerate(answers.choices[0]):
        made = Choice(wanted)
        deltas = [delta for piece in answer.pieces for delta in made.deltas(piece)] + made.rest()
        finished = answer.finished or Finished("stop")
        scores = _scored(wanted, answer.tokens)
        choices.append({"index": number, "message": message(wanted.begun, deltas), "logprobs": scores,
                        "finish_reason": made.reason(finished), "stop_reason": finished.met})  # fmt: skip
    return {**head, "object": "chat.completion", "choices": choices, "usage": usage(exchange, counted(answers))}


async def _stream(wanted: ChatRequest, exchange: Exchange, head: dict[str, Any]) -> AsyncIterator[str]:
    head = {**head, "object": "chat.completion.chunk"}
    counts: dict[tuple[int, int], int] = {}
    made = [Choice(wanted) for _ in range(wanted.plan.choices)]

    def chunk(number: int, delta: dict[str, Any], finished: Finished | None = None, scores: Any = None) -> str:
        reason = made[number].reason(finished) if finished else None
        entry = {"index": number, "delta": delta, "logprobs": scores, "finish_reason": reason}
        return sse.data({**head, "choices": [entry]} | wanted.stream.running(exchange, counts))

    for number in range(wanted.plan.choices):
        yield chunk(number, {"role": "assistant", "content": wanted.begun})
    async for _, number, event in exchange.events():
        if isinstance(event, Piece):
            counts[0, number] = counts.get((0, number), 0) + counts_of(event)
            scores = _scored(wanted, event.tokens)
            for place, delta in enumerate(made[number].deltas(event) or ([{}] if scores else [])):
                yield chunk(number, delta, scores=scores if place == 0 else None)
        elif isinstance(event, Finished):
            counts[0, number] = event.tokens
            for delta in made[number].rest():
                yield chunk(number, delta)
            yield chunk(number, {}, event)
    if wanted.stream.usage:
        yield sse.data({**head, "choices": [], "usage": usage(exchange, counts)})
