"""Tool calls: forms of tools, choices, strictness, reasoning, reading back, errors."""

from __future__ import annotations

import json

import pytest
from library_toolkit import TOOLS, calls_for
from oracle import matches

from healfsa.errors import GrammarError, IncompatibleVocabulary, SchemaError, UnsupportedFeature, VocabularyError
from healfsa.library import CallBegin, Content, read_tools, tool_calls

ROME = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Rome"}}\n</tool_call>'
NOW = '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>'


def accepted(text: str, **options) -> bool:
    calls = tool_calls(TOOLS, options.pop("style", "hermes"), **options)
    return matches(calls.grammar.expression, text.encode())


def test_parameters_as_text_keep_their_numbers():
    text = '{"type": "object", "properties": {"x": {"const": 0.5}}, "required": ["x"]}'
    for parameters in (text, json.loads(text)):
        grammar = tool_calls([{"name": "f", "parameters": parameters}], "hermes", choice="required").grammar
        for value, wanted in (("0.5", True), ('"0.5"', False)):
            call = f'<tool_call>\n{{"name": "f", "arguments": {{"x": {value}}}}}\n</tool_call>'
            assert matches(grammar.expression, call.encode()) == wanted, (parameters, value)


# How calls are chosen.


def test_auto():
    for text in ("", "Hello.", ROME, f"Hm.\n{ROME}", f"{ROME}\n{NOW}", f"{ROME} and then {NOW}.", "<tool", "a < b"):
        assert accepted(text), text
    for text in ("<tool_call>", f"{ROME}<tool_call>", ROME.replace("Rome", 'Rome"'), ROME[:-1]):
        assert not accepted(text), text


def test_required():
    for text in (ROME, f"{ROME}\n{NOW}", f"\n\n{NOW}"):
        assert accepted(text, choice="required"), text
    for text in ("", "Hello.", f"Hm. {ROME}", f"{ROME} and"):
        assert not accepted(text, choice="required"), text


def test_none():
    for text in ("", "Hello.", "<tool", "no call"):
        assert accepted(text, choice="none")
    assert not accepted(ROME, choice="none") and not accepted(f"x {ROME}", choice="none")
    assert matches(tool_calls([], "hermes").grammar.expression, b"text") and not accepted("<tool_call>", choice="none")


@pytest.mark.parametrize(
    "choice",
    [
        "now",
        {"type": "function", "function": {"name": "now"}},
        {"type": "function", "name": "now"},
        {"type": "tool", "name": "now"},
    ],
)
def test_one_by_name(choice):
    assert accepted(NOW, choice=choice)
    for text in (ROME, f"{NOW}\n{NOW}", "", "Hello."):
        assert not accepted(text, choice=choice), text


def test_allowed_tools():
    allowed = {
        "type": "allowed_tools",
        "allowed_tools": {"mode": "required", "tools": [{"type": "function", "function": {"name": "now"}}]},
    }
    assert accepted(NOW, choice=allowed) and not accepted(ROME, choice=allowed)
    assert accepted(NOW, choice="any") and not accepted("", choice={"type": "any"})


def test_one_call_at_most():
    assert accepted(f"Hm. {ROME}", parallel=False) and accepted("Hm.", parallel=False)
    for text in (f"{ROME}\n{NOW}", f"{ROME}{NOW}"):
        assert not accepted(text, parallel=False) and not accepted(text, parallel=False, choice="required")


def test_calls_at_the_start_take_the_place_of_text():
    call = '{"name": "now", "parameters": {}}'
    assert accepted(call, style="llama3-json") and accepted("Hello {}", style="llama3-json")
    assert accepted(f"{call}; {call}", style="llama3-json") and not accepted(
        f"{call}; {call}", style="llama3-json", parallel=False
    )
    assert not accepted(f"Hm. {call}"[4:] + " x", style="llama3-json")
    assert not accepted('{"name": "other', style="llama3-json") and accepted(f"Hm. {call}", style="llama3-json")


# What arguments may hold.


def with_schema(schema, text: str, style: str = "hermes", **options) -> bool:
    tools = [{"type": "function", "function": {"name": "f", "parameters": schema, **options.pop("tool", {})}}]
    calls = tool_calls(tools, style, choice="required", **options)
    return matches(calls.grammar.expression, f'<tool_call>{{"name": "f", "arguments": {text}}}</tool_call>'.encode())


OPEN = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


def test_strict():
    for strict, tool, extra in (
        (None, {}, False),
        (True, {}, False),
        (False, {}, True),
        (None, {"strict": False}, True),
        (True, {"strict": False}, False),
        (None, {"strict": True}, False),
    ):
        assert with_schema(OPEN, '{"a": 1}', strict=strict, tool=tool)
        assert with_schema(OPEN, '{"a": 1, "b": 2}', strict=strict, tool=tool) == extra, (strict, tool)
        assert not with_schema(OPEN, '{"a": "x"}', strict=strict, tool=tool)
    assert with_schema(OPEN, '{"b": "x"}', strict="names") and not with_schema(OPEN, "[]", strict="names")


def test_no_parameters():
    for schema in (None, {}, {"type": "object"}, {"type": "object", "properties": {}}):
        assert with_schema(schema, "{}")
    assert not with_schema({"type": "object", "properties": {}}, '{"a": 1}')
    assert not with_schema(None, '{"a": 1}')


def test_order_follows_properties_not_required():
    schema = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
        "required": ["age", "name"],
    }
    assert with_schema(schema, '{"name": "x", "age": 1}') and not with_schema(schema, '{"age": 1, "name": "x"}')


# Reasoning.


def test_reasoning():
    thought = "<think>\nCalls begin with <tool_call>.\n</think>\n\n"
    assert accepted(thought + ROME) and accepted(thought + "Hello.") and accepted("Hello.")
    assert accepted(thought + ROME, choice="required")
    assert not accepted(thought + ROME, reasoning="off") and accepted(ROME, reasoning=False)
    assert not accepted(ROME, reasoning="required") and accepted(thought + ROME, reasoning="required")
    opened = thought.removeprefix("<think>")
    assert accepted(opened + ROME, reasoning="open") and not accepted(ROME, reasoning="open")
    assert not accepted("Hello <think>") and not accepted("<think>never closed")


def test_reasoning_is_read():
    found = tool_calls(TOOLS, "hermes").parse("<think>\nA <tool_call>?\n</think>\n\nIt is 4.")
    assert (found.reasoning, found.content, found.calls) == ("\nA <tool_call>?\n", "\n\nIt is 4.", ())
    opened = tool_calls(TOOLS, "hermes", reasoning="open").parse("Hm.</think>" + NOW)
    assert opened.reasoning == "Hm." and opened.calls[0].name == "now"
    assert tool_calls(TOOLS, "harmony", reasoning="required").grammar is not None
    with pytest.raises(GrammarError, match="no reasoning section"):
        tool_calls(TOOLS, "llama3-json", reasoning="required")


# Reading.


def test_a_marker_inside_a_string_is_only_text():
    text = NOW.replace("{}", '{"body": "</tool_call>", "to": "x"}').replace("now", "send_message")
    found = tool_calls(TOOLS, "hermes").parse(text)
    assert found.calls[0].arguments == {"body": "</tool_call>", "to": "x"} and found.problem == ""


def test_deltas_while_streaming():
    parser = tool_calls(TOOLS, "hermes").parser()
    told: list = []
    for character in f"Hello. {ROME}":
        told.append(parser.feed(character))
    flat = [event for events in told for event in events]
    assert "".join(e.text for e in flat if isinstance(e, Content)) == "Hello. "
    assert [e.name for e in flat if isinstance(e, CallBegin)] == ["get_weather"]
    arguments = [e.openai()["tool_calls"][0]["function"]["arguments"] for e in flat if type(e).__name__ == "Arguments"]
    assert "".join(arguments) == '{"city": "Rome"}' and len(arguments) == len('{"city": "Rome"}')
    begin = next(e for e in flat if isinstance(e, CallBegin)).openai()["tool_calls"][0]
    assert begin["id"] and begin["index"] == 0 and begin["type"] == "function"


def test_raw_strings_stream_character_by_character():
    parser = tool_calls(TOOLS, "qwen3-coder").parser()
    parser.feed("<tool_call>\n<function=get_weather>\n<parameter=city>\nRo")
    assert parser.feed("m")[0].text == "m"
    assert parser.feed('"')[0].text == '\\"'
    parser.feed("\n</parameter>\n</function>\n</tool_call>")
    call = parser.finish().calls[0]
    assert call.arguments == {"city": 'Rom"'} and json.loads(call.text) == call.arguments


def test_message_for_clients():
    message = tool_calls(TOOLS, "hermes").parse(f"Hm.{ROME}{NOW}").openai()
    assert message["content"] == "Hm." and [c["id"] for c in message["tool_calls"]] == ["call_0", "call_1"]
    assert message["tool_calls"][0]["function"] == {"name": "get_weather", "arguments": '{"city": "Rome"}'}
    assert tool_calls(TOOLS, "hermes").parse("").openai() == {"role": "assistant", "content": None}


@pytest.mark.parametrize(
    ("text", "content", "calls"),
    [
        ("<tool_call>nonsense", "<tool_call>nonsense", 0),
        (ROME + "<tool_call>", "<tool_call>", 1),
        (ROME.replace("get_weather", "unknown"), None, 0),
        (ROME[:-5], "", 0),
        (ROME.replace('{"city": "Rome"}', '{"city": "Rome"'), "", 0),
    ],
)
def test_what_is_no_call_is_told(text, content, calls):
    found = tool_calls(TOOLS, "hermes").parse(text)
    assert found.problem and len(found.calls) == calls
    assert content is None or found.content == content


def test_tokens_need_a_vocabulary_and_are_not_mixed_with_text():
    calls = calls_for("hermes")
    ids = calls.vocabulary.encode("Hello é.")
    assert calls.parse(ids).content == "Hello é."
    parser = calls.parser()
    parser.feed("x")
    with pytest.raises(GrammarError, match="not both"):
        parser.feed(3)
    with pytest.raises(VocabularyError, match="vocabulary"):
        tool_calls(TOOLS, "hermes").parse([1, 2])
    parser.finish()
    with pytest.raises(GrammarError, match="finished"):
        parser.feed("x")
    assert parser.finish().content == "x"


# Forms of tools.


def test_forms_of_tools():
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    forms = [
        {"type": "function", "function": {"name": "one", "parameters": schema, "strict": True}},
        {"type": "function", "name": "two", "parameters": schema},
        {"name": "three", "description": "d", "inputSchema": schema},
        {"name": "four", "input_schema": schema},
        {"type": "function", "function": {"name": "five"}},
    ]
    found = read_tools(forms)
    assert [tool.name for tool in found] == ["one", "two", "three", "four", "five"]
    assert found[0].strict is True and found[1].strict is None and found[0].schema == found[3].schema == schema
    assert [tool.name for tool in read_tools({"tools": forms[2:4], "nextCursor": None})] == ["three", "four"]
    assert read_tools(found) == found and read_tools(forms[0])[0].name == "one"


def test_pydantic_models_and_functions():
    pydantic = pytest.importorskip("pydantic")

    class Search(pydantic.BaseModel):
        """Look for something."""

        query: str
        limit: int = 10

    def add(a: int, b: int = 0) -> int:
        """Add two numbers."""
        return a + b

    calls = tool_calls([Search, add], "hermes", "required")
    assert [(tool.name, tool.description) for tool in calls.tools] == [
        ("Search", "Look for something."),
        ("add", "Add two numbers."),
    ]
    for text in (
        '{"name": "Search", "arguments": {"query": "x", "limit": 3}}',
        '{"name": "add", "arguments": {"a": 1}}',
    ):
        assert matches(calls.grammar.expression, f"<tool_call>{text}</tool_call>".encode()), text
    for text in ('{"name": "Search", "arguments": {"limit": 3}}', '{"name": "add", "arguments": {"a": 1, "c": 2}}'):
        assert not matches(calls.grammar.expression, f"<tool_call>{text}</tool_call>".encode()), text


def test_an_mcp_client_result():
    class Listed:
        def __init__(self, tools):
            self.tools = tools

    class Entry:
        name, description, inputSchema = "lookup", "d", {"type": "object"}

    assert read_tools(Listed([Entry()]))[0].name == "lookup"


@pytest.mark.parametrize(
    ("tools", "error", "message"),
    [
        ([{"name": "f"}, {"name": "f"}], GrammarError, "two tools have the name 'f'"),
        ([{"name": "a b"}], GrammarError, "cannot stand in a call"),
        ([{"name": 'a"'}], GrammarError, "cannot stand in a call"),
        ([{}], GrammarError, "no name"),
        ([3], GrammarError, r"tools\[0\] is a int"),
        ([{"type": "web_search"}], GrammarError, "web_search"),
        ([{"name": "f", "parameters": 3}], SchemaError, "tool 'f'"),
        (
            [{"name": "f", "parameters": {"type": "object", "properties": {"x": {"type": "strin"}}}}],
            SchemaError,
            "tool 'f'",
        ),
        (
            [{"name": "f", "parameters": {"type": "object", "properties": {"x": {"pattern": "("}}}}],
            GrammarError,
            "tool 'f'",
        ),
    ],
)
def test_wrong_tools(tools, error, message):
    with pytest.raises(error, match=message):
        tool_calls(tools, "hermes")


def test_the_pointer_begins_with_the_name_of_the_tool():
    broken = {"type": "object", "properties": {"x": {"minimum": "a"}}}
    with pytest.raises(SchemaError) as caught:
        tool_calls([{"name": "ok"}, {"name": "f", "parameters": broken}], "hermes")
    assert caught.value.pointer.startswith("f") and "properties/x" in caught.value.pointer
    with pytest.raises(UnsupportedFeature, match="tool 'f'"):
        tool_calls([{"name": "f", "parameters": {"type": "object", "properties": {"class": {}}}}], "llama3-pythonic")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"style": "no-such"}, "a tool style is"),
        ({"choice": "no_such"}, "there is no tool 'no_such'"),
        ({"choice": {"type": "other"}}, "unknown choice"),
        ({"reasoning": "maybe"}, "reasoning is 'maybe'"),
        ({"strict": "very"}, "strict is 'very'"),
        ({"style": "auto"}, "needs a vocabulary"),
        ({"markers": "spelled"}, "markers is"),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(GrammarError, match=message):
        tool_calls(TOOLS, **{"style": "hermes", **options})
    with pytest.raises(GrammarError, match="no tools"):
        tool_calls([], "hermes", "required")


def test_special_tokens_that_the_tokenizer_lacks_are_named():
    vocabulary = calls_for("hermes").vocabulary
    with pytest.raises(IncompatibleVocabulary, match=r"\[TOOL_CALLS\]"):
        tool_calls(TOOLS, "mistral", vocabulary=vocabulary)
    calls = tool_calls(TOOLS, "llama3-json", vocabulary=vocabulary)  # its layout with <|python_tag|> is left out
    assert calls.specials == frozenset()
    assert matches(calls.grammar.expression, b'<|python_tag|>{"name": "unknown')


def test_equal_wishes_have_equal_keys():
    one, same, other = (tool_calls(TOOLS, "hermes", choice=c).grammar.key for c in ("auto", "auto", "required"))
    assert one == same != other
