"""Healed /v1/completions and /v1/chat/completions inside vLLM's own server, as an endpoint plugin.

In: requests as vLLM takes them. Out: its answers, without the bytes that re-spell the prompt.
Idea: the request's prompt is cut and its constraint becomes a spec for `HealFSAProcessor`; then vLLM's own handler
    answers, and what it says is put right: text, usage, echo. Stop strings that could be met inside the prompt's tail
    are looked for here instead.
Cost: that of the request unhealed; one pass over the ids of the answer.
Source: vLLM's endpoint plugins and handlers (0.32).
Not here: the masks (see processors).

Use
---
``VLLM_PLUGINS=healfsa`` with this package installed, and ``--logits-processors
healfsa.integrations.vllm:HealFSAProcessor``. A request's ``vllm_xargs`` may hold ``heal`` (a policy) and ``prefill``.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import healfsa
from healfsa.errors import HealFSAError
from healfsa.integrations.budget import most
from healfsa.integrations.spec import checked
from healfsa.integrations.vllm.answers import Answer, constraint_of, stops_of
from healfsa.integrations.vllm.setup import FIELD, engine_of


class HealingEndpoint:
    """vLLM's endpoint plugin; made by `plugin`."""

    name = "healfsa"
    required_tasks = ("generate",)

    def __init__(self) -> None:
        self._engine: healfsa.Engine | None = None
        self._chat: Any = None

    async def init_state(self, engine_client: Any, state: Any, args: Any) -> None:
        """Take the server's chat handler, with a prompt that is cut before it goes to the engine."""
        base = getattr(state, "openai_serving_chat", None)
        if base is not None:
            self._chat = healing_chat(base, self)

    def engine(self, handler: Any) -> healfsa.Engine:
        """Return the engine of the server's model."""
        if self._engine is None:
            self._engine = engine_of(handler.renderer.get_tokenizer(), handler.model_config)
        return self._engine

    def attach_router(self, app: Any) -> None:
        """Answer the two routes in place of vLLM."""
        from fastapi import Depends, Request
        from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
        from vllm.entrypoints.openai.completion.protocol import CompletionRequest
        from vllm.entrypoints.serve.utils.api_utils import load_aware_call, validate_json_request, with_cancellation

        async def create_completion(request, raw_request):  # type: ignore[no-untyped-def]
            return await self.complete(request, raw_request, raw_request.app.state.openai_serving_completion)

        async def create_chat_completion(request, raw_request):  # type: ignore[no-untyped-def]
            return await self.chat(request, raw_request)

        create_completion.__annotations__ = {"request": CompletionRequest, "raw_request": Request}
        create_chat_completion.__annotations__ = {"request": ChatCompletionRequest, "raw_request": Request}
        checked = [Depends(validate_json_request)]
        for path, answer in (("/v1/completions", create_completion), ("/v1/chat/completions", create_chat_completion)):
            app.post(path, dependencies=checked)(with_cancellation(load_aware_call(answer)))

    async def complete(self, request: Any, raw_request: Any, handler: Any) -> Any:
        """Answer a completion request."""
        try:
            answer = self.prepare(request, handler)
        except HealFSAError as wrong:
            return refusal(str(wrong))
        return await respond(await handler.create_completion(request, raw_request), answer)

    async def chat(self, request: Any, raw_request: Any) -> Any:
        """Answer a chat request; its prompt is cut by the handler, where it is rendered."""
        try:
            found = await self._chat.create_chat_completion(request, raw_request)
        except HealFSAError as wrong:
            return refusal(str(wrong))
        return await respond(found, getattr(request, "_healed", None))

    def prepare(self, request: Any, handler: Any) -> Answer | None:
        """Cut the prompt of a completion request; None where there is nothing to heal."""
        prompt = request.prompt
        if isinstance(prompt, list) and len(prompt) == 1 and isinstance(prompt[0], (str, list)):
            prompt = prompt[0]
        asked = Asked(request)
        if asked.is_spec or (asked.heal == "off" and asked.constraint is None):
            return None
        if not isinstance(prompt, str) and not (prompt and isinstance(prompt[0], int)):
            if asked.says_nothing:
                return None
            raise healfsa.PromptError("several prompts in one request cannot be healed", hint="send one request each")
        engine = self.engine(handler)
        reading = {"parse_special": True, "add_special_tokens": request.add_special_tokens}
        boundary = engine.heal(
            prompt, asked.heal, asked.prefill, least=1, **(reading if isinstance(prompt, str) else {})
        )
        echo = prompt if isinstance(prompt, str) else engine.vocabulary.decode_bytes(prompt).decode("utf-8", "replace")
        request.prompt = boundary.input_ids
        return asked.carry(engine, boundary, echo if request.echo else "")


class Asked:
    """What a request asks for beside what vLLM knows; `carry` writes the spec into it."""

    def __init__(self, request: Any) -> None:
        self._request = request
        self._extra = dict(request.vllm_xargs or {})
        self.is_spec = FIELD in self._extra  # a client of ours has cut the prompt already
        self.says_nothing = not {"heal", "prefill"} & set(self._extra)
        self.heal = self._extra.pop("heal", "auto")
        self.prefill = self._extra.pop("prefill", None)
        self.constraint = constraint_of(request)
        request.vllm_xargs = self._extra or None

    def carry(self, engine: healfsa.Engine, boundary: Any, echo: str = "") -> Answer:
        """Write the spec into the request; return what its answer must be put right with."""
        request = self._request
        constraint = self.constraint if self.constraint is not None else {}
        if constraint or boundary.owed:
            request.vllm_xargs = self._extra | {FIELD: checked(engine, constraint, boundary)}
            request.structured_outputs, request.response_format = None, None
        budgets: list[int] = []
        for name in ("max_completion_tokens", "max_tokens"):
            if (new := getattr(request, name, None)) is not None:
                budgets.append(new)
                setattr(request, name, most(boundary, new))
        stops, mine = stops_of(request.stop, boundary.owed)
        if mine:
            request.stop = []
        wanted = bool(getattr(request, "return_token_ids", False))
        request.echo, request.return_token_ids = False, True
        new = budgets[0] if budgets else None  # vLLM, too, looks at the newer name first
        return Answer(engine, boundary, stops, echo, keep_ids=wanted, new=new)


def healing_chat(base: Any, endpoint: HealingEndpoint) -> Any:
    """Return vLLM's chat handler with prompts that are cut where they are rendered."""

    class HealingChat(type(base)):  # type: ignore[misc]
        async def render_chat_request(self, request: Any) -> Any:
            rendered = await super().render_chat_request(request)
            if not isinstance(rendered, tuple) or request.tools:
                return rendered
            asked = Asked(request)
            if asked.heal == "off" or (not request.continue_final_message and asked.says_nothing):
                return rendered
            engine = endpoint.engine(self)
            first = rendered[1][0]
            boundary = engine.heal(list(first["prompt_token_ids"]), asked.heal, asked.prefill, least=1)
            first["prompt_token_ids"] = boundary.input_ids
            object.__setattr__(request, "_healed", asked.carry(engine, boundary))
            return rendered

    chat = object.__new__(HealingChat)
    chat.__dict__.update(base.__dict__)
    return chat


def refusal(message: str) -> Any:
    """Return an answer of status 400."""
    from fastapi.responses import JSONResponse

    error = {"message": message, "type": "BadRequestError", "param": None, "code": 400}
    return JSONResponse({"error": error}, status_code=400)


async def respond(found: Any, answer: Answer | None) -> Any:
    """Return what vLLM's handler found as an HTTP response, put right."""
    from fastapi.responses import JSONResponse, StreamingResponse

    if hasattr(found, "model_dump"):
        status = getattr(getattr(found, "error", None), "code", 200)
        whole = found.model_dump()
        return JSONResponse(answer.whole(whole) if answer and status == 200 else whole, status_code=int(status))
    events = found if answer is None else corrected(found, answer)
    return StreamingResponse(events, media_type="text/event-stream")


async def corrected(events: AsyncIterator[str], answer: Answer) -> AsyncIterator[str]:
    """Yield server-sent events with their text put right."""
    async for event in events:
        if event.startswith("data: {"):
            event = f"data: {json.dumps(answer.chunk(json.loads(event[6:])), ensure_ascii=False)}\n\n"
        yield event


def plugin() -> HealingEndpoint:
    """Return the plugin; the entry point of ``vllm.endpoint_plugins``."""
    return HealingEndpoint()
