"""A chat as token ids, with the message that is to be continued.

In: messages, tools. Out: `Prompt` and the begun answer (the prefill).
Idea: the turns before go through the model's own template; a begun answer follows as it is, byte for byte, so none of
    its white space is lost. A special token that a message spells stays text: the ids are made between the template's
    own special tokens.
Source: continue_final_message (transformers, vLLM, SGLang), prefix: true (Mistral, DeepSeek), a trailing message of the
    assistant (Anthropic, llama.cpp).
Not here: which tools may be called (toolfields).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import healfsa
from healfsa.errors import HealFSAError
from healfsa.server import shapes
from healfsa.server.catalogue import Served
from healfsa.server.errors import ApiError, translated
from healfsa.server.fields import Fields, whole
from healfsa.server.plan import Prompt

ROLES = frozenset(("system", "developer", "user", "assistant", "tool", "function"))
MOST_MESSAGES = 4096
_OPEN, _CLOSE = "\ue0f0", "\ue0f1"  # private characters around the number of a spelled special token
_GIVEN = frozenset(  # the keys that templates look for; all other keys are a client's texts
    """role content name tool_calls tool_call_id id type function arguments description parameters properties
    required""".split()
)
_GUARD = re.compile(f"{_OPEN}([0-9]+){_CLOSE}")

TOOLS_NOTE = (
    "You may call functions. For each call write a JSON object inside <tool_call></tool_call>: "
    '<tool_call>\n{"name": <name>, "arguments": <arguments>}\n</tool_call>\nThe functions:\n'
)


@dataclass(frozen=True, slots=True)
class Chat:
    """The turns of a chat; `begun` is the answer's beginning, which the client already has."""

    turns: tuple[dict[str, Any], ...]
    begun: str = ""
    continued: bool = False


def read_chat(fields: Fields) -> Chat:
    """Return the turns and the begun answer of a request."""
    messages = fields.get("messages", list)
    if not messages:
        raise fields.wrong("messages", "must have at least one message")
    if len(messages) > MOST_MESSAGES:
        raise fields.wrong("messages", f"has {len(messages)} messages; at most {MOST_MESSAGES} are taken", "too_many")
    turns = [_turn(message, f"messages[{place}]") for place, message in enumerate(messages)]
    continues = fields.get("continue_final_message", bool)
    new_turn = fields.get("add_generation_prompt", bool)
    last = turns[-1]
    marked = bool(last.pop("prefix", False))
    if any(turn.get("prefix") for turn in turns):
        raise ApiError("only the last message can have prefix: true", param="messages")
    if continues and new_turn:
        raise fields.wrong("continue_final_message", "and add_generation_prompt cannot both be true")
    if (continues or marked) and last["role"] != "assistant":
        param = "continue_final_message" if continues else f"messages[{len(turns) - 1}].prefix"
        raise ApiError("only a message of the assistant can be continued", param=param)
    by_place = last["role"] == "assistant" and not last.get("tool_calls") and continues is None and not new_turn
    if continues or marked or by_place:
        return Chat(tuple(turns[:-1]), last.get("content") or "", True)
    if new_turn is False:
        raise fields.wrong("add_generation_prompt", "can be false only where the last message is continued")
    return Chat(tuple(turns))


def _turn(message: Any, path: str) -> dict[str, Any]:
    """Return a message as templates expect it: text in one piece, arguments of calls as values."""
    if not isinstance(message, dict) or not isinstance(message.get("role"), str) or message["role"] not in ROLES:
        raise ApiError(f"{path} must be an object with a known role", param=path)
    plain = {name: value for name, value in message.items() if name != "content"}
    shapes.check(plain, shapes.MESSAGE, path)
    turn = {key: value for key, value in message.items() if value is not None}
    if turn["role"] == "developer":
        turn["role"] = "system"
    turn["content"] = _content(message.get("content"), f"{path}.content")
    if not isinstance(turn.get("tool_calls", []), list):
        raise ApiError(f"{path}.tool_calls must be an array", param=path)
    if "tool_calls" in turn:
        turn["tool_calls"] = [_call(call, f"{path}.tool_calls") for call in turn["tool_calls"] or []]
        if not turn["tool_calls"]:
            del turn["tool_calls"]
    return turn


def _content(content: Any, path: str) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        raise ApiError(f"{path} must be a string or an array of text parts", param=path)
    for part in content:
        typed = isinstance(part, dict) and part.get("type", "text") in shapes.TEXTS
        if not typed or not isinstance(part.get("text"), str):
            kind = part.get("type") if isinstance(part, dict) else type(part).__name__
            raise ApiError(f"{path}: only text can be read, not {kind!r}", param=path, code="unsupported_content")
    shapes.check(content, [shapes.PART], path)
    return "".join(part["text"] for part in content)


def _call(call: Any, path: str) -> dict[str, Any]:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise ApiError(f"{path} must be function calls with a name", param=path)
    arguments = function.get("arguments") or "{}"
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            raise ApiError(f"{path}: the arguments are not JSON", param=path) from None
        whole(arguments, f"{path}.function.arguments")
    return {**call, "type": "function", "function": {**function, "arguments": arguments}}


def chat_prompt(
    served: Served, chat: Chat, tools: list[Any], options: Mapping[str, Any], prefill: str | None
) -> Prompt:
    """Return the prompt of a chat; `options` go to the template."""
    text = _rendered(served, chat, tools, options)
    try:
        ids = _ids(served.vocabulary, text, chat.begun)
    except HealFSAError as failure:
        raise translated(failure, "messages") from None
    return Prompt(ids, {}, prefill or None)


def _rendered(served: Served, chat: Chat, tools: list[Any], options: Mapping[str, Any]) -> str:
    """Return the text of the turns up to where the answer begins, spelled special tokens of messages guarded."""
    template = _template(served.tokenizer)
    if template is None:
        raise ApiError("this model has no chat template: use /v1/completions", param="messages")
    names = _names(served.vocabulary)
    turns = [{**_guarded(turn, names), "role": turn["role"]} for turn in chat.turns]
    given: dict[str, Any] = {key: _guarded(value, names) for key, value in options.items()}
    if tools and "tools" in template:
        given["tools"] = _guarded(tools, names)
    elif tools:
        turns = _with_note(turns, _guarded(tools, names))
    try:
        return served.tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True, **given)
    except Exception as failure:  # templates raise what they like
        own = type(failure).__module__.partition(".")[0] == "jinja2"  # only what a template says itself is told
        first = next(iter(str(failure).splitlines()), "") if own else "it failed on them"
        raise ApiError(f"the chat template refuses these messages: {first[:200]}", param="messages",
                       code="template_error") from None  # fmt: skip


def _template(tokenizer: Any) -> str | None:
    template = getattr(tokenizer, "chat_template", None)
    if isinstance(template, dict):
        template = template.get("tool_use") or template.get("default")
    return template or None


def _with_note(turns: list[dict[str, Any]], tools: list[Any]) -> list[dict[str, Any]]:
    """Describe tools in the system message, for templates that do not know of tools."""
    note = TOOLS_NOTE + "\n".join(json.dumps(tool, ensure_ascii=False) for tool in tools)
    if turns and turns[0]["role"] == "system":
        return [{**turns[0], "content": f"{turns[0]['content']}\n\n{note}"}, *turns[1:]]
    return [{"role": "system", "content": note}, *turns]


def _names(vocabulary: healfsa.Vocabulary) -> list[str]:
    """Return what a client's texts may not spell as it is: special tokens, longest first, and the marks themselves."""
    return [*sorted(filter(None, vocabulary.specials), key=len, reverse=True), _OPEN, _CLOSE]


def _guarded(value: Any, names: list[str]) -> Any:
    """Return a value in whose texts, keys included, the spellings of `names` are replaced by their numbers."""
    if isinstance(value, str):
        places = [place for place, name in enumerate(names) if name in value]
        if not places:
            return value
        numbers = {names[place]: f"{_OPEN}{place}{_CLOSE}" for place in places}
        return re.sub("|".join(map(re.escape, numbers)), lambda found: numbers[found[0]], value)
    if isinstance(value, dict):
        return {key if key in _GIVEN else _guarded(key, names): _guarded(child, names) for key, child in value.items()}
    return [_guarded(child, names) for child in value] if isinstance(value, list) else value


def _ids(vocabulary: healfsa.Vocabulary, text: str, begun: str) -> tuple[int, ...]:
    """Return the ids of a rendered chat with the begun answer behind it."""
    names = _names(vocabulary)
    if not _GUARD.search(text) and not any(name in begun for name in names):
        return tuple(vocabulary.encode(text + begun, parse_special=True))
    pattern = "|".join(re.escape(name) for name in names[:-2])
    ids: list[int] = []
    parts = re.split(f"({pattern})", text) if pattern else [text]
    parts[-1] += _guarded(begun, names)
    for part in parts:
        if part in vocabulary.specials:
            ids.append(vocabulary.specials[part])
        elif part:
            ids += vocabulary.encode(_GUARD.sub(lambda found: names[int(found[1])], part))
    return tuple(ids)
