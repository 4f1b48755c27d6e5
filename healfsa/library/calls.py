"""Tool calls: the grammar of what a model may answer, and the way back from its answer to calls.

In: tools, the name of a tool style (or "auto"), what the user wants. Out: `ToolCalls`, with a grammar and parsers.
Idea: the same style data makes the grammar and reads the output, so what the grammar lets through the parser
    understands.
Cost: the arguments of a tool are compiled once, about a millisecond for ten of them, and remembered.
Not here: running the model (see healfsa.engine), the tools themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from healfsa.arguments import one_of, shown, string
from healfsa.arguments import vocabulary as known_vocabulary
from healfsa.errors import GrammarError, PromptError
from healfsa.grammar import expression as ex
from healfsa.grammar.grammar import Grammar, make_grammar, reports_of
from healfsa.grammar.json_schema.sources import written
from healfsa.grammar.tags.arguments import ArgumentStyle, arguments
from healfsa.grammar.tags.derive import after
from healfsa.grammar.tags.template import Marker, Text, marked
from healfsa.library import markers as marks
from healfsa.library.callgrammar import CallGrammar, Wish
from healfsa.library.parser import Call, Parsed, Parser
from healfsa.library.recognise import recognise
from healfsa.library.render import render
from healfsa.library.styles import ToolStyle, get_style
from healfsa.library.toolspecs import Tool, named, read_tools

REASONING = ("off", "optional", "required", "open")


@dataclass(frozen=True, slots=True, eq=False)
class ToolCalls:
    """What a model may answer when it has tools.

    Attributes
    ----------
    grammar : Grammar
        The answers: give it to `engine.compile` or `engine.matcher`.
    style : ToolStyle
        The format.
    why : str
        Why this style was chosen.
    tools : tuple of Tool
        The tools that may be called.
    specials : frozenset of str
        Which markers are special tokens; all others are text.
    written, prefill : str
        What of the answer the prompt holds already (see `after`): all of it, and the text behind the last special
        token.
    """

    grammar: Grammar = field(repr=False)
    style: ToolStyle
    why: str
    tools: tuple[Tool, ...]
    specials: frozenset[str]
    wish: Wish
    vocabulary: Any = field(default=None, repr=False)
    written: str = ""
    prefill: str = ""

    def after(self, written: str) -> ToolCalls:
        """Return the calls of an answer whose beginning stands in the prompt already.

        Parameters
        ----------
        written : str
            The end of the prompt that belongs to the answer, markers spelled. Generate with the result's `grammar`
            and its `prefill` (what stands behind the last special token); its parsers know what was written.

        Raises
        ------
        PromptError
            No answer begins so.

        Examples
        --------
        >>> begun = tool_calls([{"name": "now"}], "hermes").after('<tool_call>\\n{"name": "n')
        >>> begun.parse('ow", "arguments": {}}\\n</tool_call>').calls[0].name
        'now'
        """
        parts = marked(string("written", written, PromptError), self.specials)
        last = max((i for i, part in enumerate(parts) if isinstance(part, Marker)), default=-1)
        head = [
            p.name if isinstance(p, Marker) else p.text.encode()
            for p in parts[: last + 1]
            if isinstance(p, Marker | Text)
        ]
        expression = after(self.grammar.expression, head)
        if isinstance(expression, ex.Nothing):
            raise PromptError(f"no answer in the style {self.style.name!r} begins with {written!r}")
        grammar = self.grammar
        if head:
            grammar = make_grammar(expression, "tool_calls", grammar.source, grammar.key, head)
        return replace(self, grammar=grammar, written=self.written + written, prefill=written[len(_spelled(head)) :])

    def parser(self) -> Parser:
        """Return a new parser that is fed piece by piece and says what is new."""
        opened = self.wish.reasoning == "open"
        return Parser(self.style, self.tools, self.specials, opened, self.vocabulary, self.written)

    def parse(self, output: str | bytes | Iterable[int]) -> Parsed:
        """Read a whole answer.

        Parameters
        ----------
        output : str, bytes or iterable of int
            Text with the markers spelled in it, or token ids (which need the vocabulary).

        Returns
        -------
        Parsed
            Calls, text and reasoning; `.problem` says what was wrong with an answer that was not written under the
            grammar.
        """
        parser = self.parser()
        parser.feed(output)
        return parser.finish()

    def render(self, calls: Sequence[Call | dict[str, Any]], content: str = "", reasoning: str = "") -> str:
        """Return the text that a model writes for these calls, markers spelled; the inverse of `parse`."""
        return render(self.style, calls, content, reasoning)


def tool_calls(
    tools: Any,
    style: str | ToolStyle = "auto",
    choice: str | dict[str, Any] = "auto",
    *,
    parallel: bool = True,
    strict: bool | str | None = None,
    reasoning: str | bool = "auto",
    vocabulary: Any = None,
    chat_template: Any = None,
    markers: str = "auto",
) -> ToolCalls:
    """Return the grammar and the parser of tool calls.

    Parameters
    ----------
    tools : list
        OpenAI tool dicts (of either API), an MCP tool list, pydantic models, functions; mixed as you like.
    style : str or ToolStyle
        Name of a tool style (`healfsa library list tools`); "auto" recognises it from the vocabulary and the chat
        template.
    choice : str or dict
        "auto" (text or calls), "required" (calls at once), "none" (no call), the name of a tool (one call of it), or
        OpenAI's `{"type": "function", ...}` and `{"type": "allowed_tools", ...}`.
    parallel : bool
        False: at most one call.
    strict : bool or str, optional
        True: no arguments beyond the listed ones. False: what the schema says of them. "names": only the names are
        enforced, arguments are any object. None: what each tool says itself, else True.
    reasoning : str or bool
        A reasoning section before the answer: "off" (False), "optional" (True), "required", "open" (the prompt has
        already opened it). "auto": optional where the style has one.
    vocabulary : healfsa.Vocabulary, optional
        Decides which markers are special tokens, and decodes token ids for the parser.
    chat_template : str or tokenizer, optional
        Used by "auto".
    markers : {"auto", "text"}
        "text": a grammar of spelled texts, whatever the tokenizer has.

    Raises
    ------
    GrammarError
        For tools that are none, two with one name, an unknown style or choice; `SchemaError` and
        `UnsupportedFeature` with a pointer that begins with the tool's name.
    IncompatibleVocabulary
        The tokenizer lacks special tokens of the style.

    Examples
    --------
    >>> calls = tool_calls([{"name": "now"}], style="hermes", choice="required")
    >>> calls.parse('<tool_call>{"name": "now", "arguments": {}}</tool_call>').calls[0].name
    'now'
    """
    known, why = _style(style, known_vocabulary(vocabulary, GrammarError), chat_template)
    mode, offered = _choice(choice, read_tools(tools))
    wish = Wish(mode, bool(parallel), _reasoning(reasoning, known))
    specials, absent = marks.resolve(known, vocabulary, markers)
    compiled = {} if mode == "none" else {tool.name: _arguments(tool, known, specials, strict) for tool in offered}
    found = CallGrammar(known, {name: g.expression for name, g in compiled.items()}, specials, absent, wish).whole()
    keys = [(name, g.key) for name, g in compiled.items()]
    source = f"{known.name}: {', '.join(compiled)}"
    grammar = make_grammar(
        found,
        "tool_calls",
        source,
        known,
        wish,
        sorted(specials),
        sorted(absent),
        keys,
        report_entries=reports_of(compiled.values()),
    )
    return ToolCalls(grammar, known, why, offered, specials, wish, vocabulary)


def _style(style: str | ToolStyle, vocabulary: Any, chat_template: Any) -> tuple[ToolStyle, str]:
    if isinstance(style, ToolStyle):
        return style, "given"
    if not isinstance(style, str) or style != "auto":
        return get_style(style), "named"
    template = chat_template if isinstance(chat_template, str) else None
    if vocabulary is None and template is None and chat_template is None:
        raise GrammarError('style="auto" needs a vocabulary or a chat template', hint="name a style: style='hermes'")
    holder = vocabulary if vocabulary is not None else chat_template
    if template is None and chat_template is not None:
        template = getattr(chat_template, "chat_template", None)
    found = recognise(
        _NoTokens() if isinstance(holder, str) else holder, template if isinstance(template, str) else None
    )
    return get_style(found.style), found.why


class _NoTokens:
    """Stands for a tokenizer of which only the chat template is known."""

    specials: dict[str, int] = {}
    added_text: dict[str, int] = {}


def _choice(choice: str | dict[str, Any], tools: tuple[Tool, ...]) -> tuple[str, tuple[Tool, ...]]:
    """Return the mode and the tools that may be called."""
    if isinstance(choice, dict):
        return _from_dict(choice, tools)
    string("choice", choice, GrammarError, hint='"auto", "required", "none", or the name of a tool')
    if choice == "any":  # LangChain's and Anthropic's word
        choice = "required"
    if choice in ("auto", "required", "none"):
        mode = "none" if choice == "auto" and not tools else choice
        if mode == "required" and not tools:
            raise GrammarError('choice is "required", but there are no tools')
        return mode, tools
    return "one", _only([choice], tools)


def _from_dict(choice: dict[str, Any], tools: tuple[Tool, ...]) -> tuple[str, tuple[Tool, ...]]:
    kind = choice.get("type")
    if kind == "allowed_tools":
        inner = choice.get("allowed_tools", choice)
        names = [entry.get("name") or entry.get("function", {}).get("name") for entry in inner.get("tools", ())]
        return _choice(inner.get("mode", "auto"), _only(names, tools))
    name = choice.get("name") or choice.get("function", {}).get("name")
    if kind in ("function", "tool") and isinstance(name, str):
        return "one", _only([name], tools)
    if kind in ("auto", "any", "none", "required"):
        return _choice(kind, tools)
    raise GrammarError(f"unknown choice {choice!r}", hint='"auto", "required", "none", or the name of a tool')


def _only(names: Sequence[str], tools: tuple[Tool, ...]) -> tuple[Tool, ...]:
    known = {tool.name: tool for tool in tools}
    missing = [name for name in names if name not in known]
    if missing or not names:
        wrong = shown(missing[0]) if missing else "without a name"
        raise GrammarError(f"there is no tool {wrong}", hint=f"there are: {', '.join(known)}")
    return tuple(known[name] for name in names)


def _reasoning(reasoning: str | bool, style: ToolStyle) -> str:
    if isinstance(reasoning, bool):
        reasoning = "optional" if reasoning else "off"
    wanted = one_of("reasoning", reasoning, ("auto", *REASONING), GrammarError)
    if wanted == "auto":
        return "optional" if style.reasoning is not None else "off"
    if wanted != "off" and style.reasoning is None:
        raise GrammarError(f"the tool style {style.name!r} has no reasoning section", hint='reasoning="off"')
    return wanted


def _arguments(tool: Tool, style: ToolStyle, specials: frozenset[str], strict: bool | str | None) -> Grammar:
    if strict is not None and not isinstance(strict, bool) and not (isinstance(strict, str) and strict == "names"):
        raise GrammarError(f"strict is {shown(strict)}", hint='True, False, None or "names"')
    closed = strict if isinstance(strict, bool) else tool.strict if tool.strict is not None else True
    schema = {"type": "object"} if strict == "names" else tool.schema
    if schema is True or schema == {}:
        schema = {"type": "object"}
    elif isinstance(schema, dict) and schema.get("type") == "object" and not schema.get("properties") and closed:
        schema = {**schema, "additionalProperties": schema.get("additionalProperties", strict == "names")}
    try:
        found = _compiled(written(schema), style.arguments, specials, closed)
    except GrammarError as error:
        raise named(error, tool.name) from None
    if isinstance(found.expression, ex.Nothing):
        raise GrammarError(f"tool {tool.name!r}: no arguments satisfy its schema")
    return found


@lru_cache(maxsize=1024)
def _compiled(schema: str, style: ArgumentStyle, specials: frozenset[str], closed: bool) -> Grammar:
    """Return the arguments of one schema; clients send the same tools with every request."""
    return arguments(schema, style, specials=specials, closed=closed)


def _spelled(parts: Sequence[bytes | str]) -> str:
    """Return texts and special tokens as one text."""
    return "".join(part if isinstance(part, str) else part.decode() for part in parts)
