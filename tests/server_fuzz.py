"""Random request bodies: valid ones with fields, values and grammars that nobody would send."""

from __future__ import annotations

import json
import random

ROUTES = ("/v1/completions", "/v1/chat/completions", "/v1/responses", "/playground/probe")
WORDS = [
    "",
    "a",
    "x.re",
    "é京🎉",
    "\x00",
    "\ud800",
    "<|im_end|>",
    "(",
    "[",
    "\\",
    "{}",
    "::=",
    "root ::= ",
    "start: ",
    "$ref",
    "auto",
    "none",
    "required",
    "exact",
    "off",
    "one",
    "json_object",
    "json_schema",
    "regex",
    "a" * 3000,
    "-1",
    "0",
    "user",
    "assistant",
    "system",
    "text",
    "function",
    "\\p{L}",
    "(?=a)b",
    "a{1,100000}",
    "(a*)*b",
    "[^\\s\\S]",
    "#/$defs/x",
    '{"type": "string"}',
    "<tool_call>",
    'root ::= "a" root | ""',
    "%llguidance {}",
]
NUMBERS = [
    0,
    1,
    -1,
    2,
    7,
    16,
    0.5,
    -0.0,
    1e308,
    float("inf"),
    float("nan"),
    2**31,
    2**63,
    2**64,
    -(2**70),
    10**400,
    1e-320,
]
FIELDS = """model prompt messages input max_tokens max_completion_tokens max_output_tokens n best_of stream
    stream_options echo suffix logprobs top_logprobs stop seed temperature top_p top_k min_p presence_penalty
    frequency_penalty
    repetition_penalty repeat_penalty logit_bias stop_token_ids min_tokens ignore_eos heal prefill parse_special
    add_special_tokens response_format structured_outputs guided_json guided_regex guided_choice guided_grammar
    guided_json_object regex json_schema ebnf grammar text tools tool_choice parallel_tool_calls
    include_stop_str_in_output continue_final_message add_generation_prompt chat_template_kwargs user metadata
    instructions include reasoning previous_response_id flavour truncation""".split()
VALID: dict = {
    "n": [1, 2, 3],
    "stream": [True],
    "echo": [True],
    "suffix": [" x", None],
    "logprobs": [True, 0, 3],
    "top_logprobs": [2],
    "stop": ["a", ["a", "é"], []],
    "seed": [1, -1, 2**70],
    "temperature": [0, 0.5, 2],
    "top_p": [0.1, 1],
    "top_k": [0, 1, 5, -1],
    "min_p": [0.1, 1],
    "presence_penalty": [1, -2],
    "frequency_penalty": [2],
    "repetition_penalty": [1.3],
    "logit_bias": [{"3": 5}, {"0": -100}, {}],
    "stop_token_ids": [[1, 40], []],
    "min_tokens": [1, 30],
    "ignore_eos": [True],
    "heal": ["auto", "exact", "exact", "off", "one", 3],
    "prefill": ["a", True, False],
    "parse_special": [False],
    "stream_options": [{"include_usage": True}],
    "tool_choice": ["auto"],
    "parallel_tool_calls": [False],
    "regex": ["[a-z]{2,5}", "x?"],
    "guided_choice": [["a", "é"]],
    "instructions": ["be brief"],
    "text": [{"format": {"type": "text"}}],
    "response_format": [{"type": "json_object"}, {"type": "text"}],
    "max_tokens": [0, 1, 8],
    "user": ["x"],
    "include_stop_str_in_output": [True],
    "continue_final_message": [True],
    "add_generation_prompt": [True, False],
}
KEYWORDS = """type properties required items prefixItems enum const minLength maxLength pattern minimum maximum
    multipleOf exclusiveMinimum minItems maxItems uniqueItems contains additionalProperties patternProperties
    propertyNames allOf anyOf oneOf not if then else $ref $defs $id format dependentRequired unevaluatedProperties
    minProperties maxProperties title description nullable definitions $anchor $dynamicRef""".split()
TYPES = ["object", "array", "string", "number", "integer", "boolean", "null", "nothing"]
FORMATS = ["date", "date-time", "uuid", "ipv6", "email", "uri", "regex", "unknown"]
LETTERS = "ab(|)[]{}*+?.^$\\d\\w\\b-,1é京 \n"
PARTS = [
    "root",
    "::=",
    "start",
    ":",
    '"a"',
    "|",
    "[a-z]",
    "*",
    "+",
    "?",
    "(",
    ")",
    "{1,3}",
    "\n",
    "/re/",
    "%ignore",
    "%json",
    "&",
    "~",
    "<",
    ">",
    "<|im_end|>",
    "{",
    "}",
    "WORD",
    "#",
    "//",
]
TAGS = [
    "const_string",
    "json_schema",
    "any_text",
    "sequence",
    "or",
    "tag",
    "triggered_tags",
    "regex",
    "grammar",
    "token",
]


class Bodies:
    """A stream of bodies; the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)

    def next(self) -> tuple[str, str]:
        """Return a route and a body (JSON text, mostly)."""
        draw = self._draw
        route = draw.choice(ROUTES)
        if draw.random() < 0.02:
            return route, self._broken()
        body = self._base(route)
        for _ in range(draw.choice([1, 1, 1, 2, 3])):
            self._disturb(body)
        return route, json.dumps(body)

    def _broken(self) -> str:
        draw = self._draw
        whole = [
            "",
            "[]",
            "null",
            "1",
            "{",
            '{"prompt": }',
            "[" * 5000,
            '{"a":' * 3000 + "1" + "}" * 3000,
            "\ufeff{}",
            '"x"',
            '{"prompt": "a", "prompt": 3}',
            "{" + "}" * 9,
        ]
        return draw.choice(whole)

    def _base(self, route: str) -> dict:
        draw = self._draw
        body: dict = {"max_tokens": draw.choice([1, 2, 5])}
        text = draw.choice(["a", "The company hired an intermed", "x.re", "", '{"name": "B'])
        if "chat" in route:
            body["messages"] = [{"role": "user", "content": text}]
            if draw.random() < 0.2:
                body["messages"].append({"role": "assistant", "content": draw.choice(["a", '{"', "<tool_call>"])})
        elif "responses" in route:
            body = {"max_output_tokens": 3, "input": text}
        else:
            body["prompt"] = text
        if draw.random() < 0.3:
            body["stream"] = True
        return body

    def _disturb(self, body: dict) -> None:
        draw = self._draw
        makers = (
            self._any_field,
            self._any_field,
            self._schema_field,
            self._pattern_field,
            self._grammar_field,
            self._tools,
            self._messages,
            self._tag,
            self._prompt,
            self._gone,
        )
        draw.choice(makers)(body)

    def _any_field(self, body: dict) -> None:
        name = self._draw.choice(FIELDS)
        body[name] = self._draw.choice([self.value(), *VALID[name]]) if name in VALID else self.value()

    def _gone(self, body: dict) -> None:
        body.pop(self._draw.choice(list(body)), None) if body else None

    def _prompt(self, body: dict) -> None:
        ids = [self._draw.randrange(-2, 720) for _ in range(self._draw.randint(0, 6))]
        name = self._draw.choice(["prompt", "input", "stop_token_ids"])
        body[name] = self._draw.choice([ids, [ids], [ids, "a"], ["a", "b"], self.text(), self.value()])

    def _schema_field(self, body: dict) -> None:
        schema, draw = self.schema(), self._draw
        form = draw.choice(["json_schema", "guided_json", "response_format", "structured_outputs", "text", "grammar"])
        if form == "response_format":
            body[form] = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
        elif form == "structured_outputs":
            body[form] = {"json": schema}
        elif form == "text":
            body[form] = {"format": {"type": "json_schema", "name": "x", "schema": schema}}
        elif form == "grammar":
            body[form] = {"type": "json", "value": schema}
        else:
            body[form] = schema

    def _pattern_field(self, body: dict) -> None:
        pattern = "".join(self._draw.choices(LETTERS, k=self._draw.randint(0, 14)))
        body[self._draw.choice(["regex", "guided_regex"])] = pattern

    def _grammar_field(self, body: dict) -> None:
        parts = " ".join(self._draw.choices(PARTS, k=self._draw.randint(0, 12)))
        body[self._draw.choice(["grammar", "ebnf", "guided_grammar"])] = (
            self._draw.choice(["root ::= ", "start: ", ""]) + parts
        )

    def _tools(self, body: dict) -> None:
        draw = self._draw
        function = {"name": draw.choice(["f", "get_weather", self.value()]), "parameters": self.schema()}
        tool = draw.choice([{"type": "function", "function": function}, {"type": "function", **function}, self.value()])
        body["tools"] = draw.choice([[tool], [tool, tool], self.value()])
        if draw.random() < 0.6:
            named = {"type": "function", "function": {"name": "f"}}
            body["tool_choice"] = draw.choice(["auto", "required", "none", named, self.value()])

    def _messages(self, body: dict) -> None:
        draw = self._draw
        message = {"role": draw.choice(["user", "assistant", "tool", "system", self.value()]), "content": self.value()}
        if draw.random() < 0.5:
            message[draw.choice(["prefix", "tool_calls", "name", "tool_call_id", "type"])] = self.value()
        name = draw.choice(["messages", "input"])
        body[name] = draw.choice(
            [[message], [*(body.get(name) or []), message] if isinstance(body.get(name), list) else []]
        )

    def _tag(self, body: dict) -> None:
        body["structured_outputs"] = {"structural_tag": {"type": "structural_tag", "format": self._format(0)}}

    def _format(self, depth: int) -> object:
        draw = self._draw
        made: dict = {"type": draw.choice(TAGS)}
        inner = self._format(depth + 1) if depth < 3 and draw.random() < 0.6 else self.value()
        for name in draw.sample(
            [
                "value",
                "elements",
                "begin",
                "end",
                "content",
                "tags",
                "triggers",
                "pattern",
                "json_schema",
                "grammar",
                "token",
                "excludes",
            ],
            draw.randint(0, 4),
        ):
            made[name] = draw.choice([inner, [inner], self.text(), self.value()])
        return made

    def text(self) -> str:
        """Return some text."""
        draw = self._draw
        return draw.choice(WORDS) if draw.random() < 0.8 else "".join(draw.choices(LETTERS, k=9))

    def value(self, depth: int = 0) -> object:
        """Return any JSON value."""
        draw = self._draw
        kind = draw.random()
        if kind < 0.35:
            return self.text()
        if kind < 0.6:
            return draw.choice(NUMBERS)
        if kind < 0.75 or depth > 2:
            return draw.choice([None, True, False])
        if kind < 0.88:
            return [self.value(depth + 1) for _ in range(draw.randint(0, 3))]
        return {
            draw.choice([*KEYWORDS, *FIELDS, "type", "function"]): self.value(depth + 1)
            for _ in range(draw.randint(0, 3))
        }

    def schema(self, depth: int = 0) -> object:
        """Return something like a JSON Schema."""
        draw = self._draw
        if depth > 3 or draw.random() < 0.1:
            return draw.choice([True, False, {}, {"type": draw.choice(TYPES)}, {"$ref": "#"}, self.value(2)])
        made: dict = {}
        for name in draw.sample(KEYWORDS, draw.randint(1, 4)):
            made[name] = self._keyword(name, depth)
        return made

    def _keyword(self, name: str, depth: int) -> object:
        draw = self._draw
        if draw.random() < 0.1:
            return self.value(1)
        if name == "type":
            return draw.choice([draw.choice(TYPES), draw.sample(TYPES, 2)])
        if name in ("properties", "$defs", "definitions", "patternProperties"):
            return {
                draw.choice(["a", "b", "x", "^a", "(", ""]): self.schema(depth + 1) for _ in range(draw.randint(0, 3))
            }
        if name in ("allOf", "anyOf", "oneOf", "prefixItems"):
            return [self.schema(depth + 1) for _ in range(draw.randint(0, 3))]
        if name in (
            "items",
            "additionalProperties",
            "not",
            "if",
            "then",
            "else",
            "contains",
            "propertyNames",
            "unevaluatedProperties",
        ):
            return self.schema(depth + 1)
        if name in ("required", "enum"):
            return draw.choice([["a"], ["a", "b"], [self.value(2), 1], []])
        if name == "pattern":
            return "".join(draw.choices(LETTERS, k=draw.randint(0, 8)))
        if name in ("$ref", "$dynamicRef"):
            return draw.choice(["#", "#/$defs/x", "#/properties/a", "http://example.org/x", "", "#a"])
        if name == "format":
            return draw.choice(FORMATS)
        return draw.choice(NUMBERS)
