"""Eleven prompts on the embedded model: continued as they are, healed, and healed inside a grammar.

Run it with `make demo`, or `python examples/demo.py` where the package and the model's wheel are installed.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table
from rich.text import Text

import healfsa
from healfsa.integrations.transformers import Generator

NEW_TOKENS = 9


PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 12},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
    },
    "required": ["name", "age"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class Case:
    """A prompt that ends inside what the tokenizer makes one token, and what may follow: a pattern or a JSON Schema."""

    prompt: str
    pattern: str | dict
    prefill: str | None = None

    @property
    def grammar(self) -> healfsa.Grammar:
        """The compiled form's source."""
        return healfsa.regex(self.pattern) if isinstance(self.pattern, str) else healfsa.json_schema(self.pattern)

    @property
    def shown(self) -> str:
        """The pattern as the table shows it."""
        return self.pattern if isinstance(self.pattern, str) else "JSON Schema {name, age}"


CASES = [
    Case("The link is https:", r"//www\.[a-z]{3,12}\.(com|org)"),
    Case("def f(x):\n    ret", r"urn [x0-9+*() ]{1,12}\n"),
    Case("The capital of Fra", r"nce is [A-Z][a-z]+\."),
    Case("import numpy as np\nx.re", r"(duce|turn|place)\("),
    Case('{"name": "Ada", "age": 3', r'[0-9]?, "city": "[A-Z][a-z]+"\}'),
    Case('A person as JSON: {"name": "B', PERSON, prefill='{"name": "B'),
    Case("Das ist ein Ei", r"(nhorn|mer|sbecher|n)[ .]"),
    Case("if x > 0:\n    y = 1\nelse:\n   ", r" +[a-z] = -?[0-9]\n"),
    Case("for i in ran", r"ge\([0-9]+\):"),
    Case("The company hired an intermed", r"i[a-z]+ to [a-z ]{3,20}"),
    Case("The answer is ", r"(yes|no|maybe)\."),
]


def shown(text: str, width: int = 34) -> Text:
    """Return a text on one line, line ends made visible, cut where it is long."""
    line = text.replace("\n", "⏎").replace("\t", "⇥")
    return Text(line if len(line) <= width else line[: width - 1] + "…")


def main() -> None:
    """Print the table."""
    console = Console(width=150)
    started = time.perf_counter()
    model, tokenizer = healfsa.models.load()
    generator = Generator(model, tokenizer)
    options = {"max_new_tokens": NEW_TOKENS, "do_sample": False}
    table = Table(title="SmolLM2-135M-Instruct, greedy: what follows the prompt", show_lines=True)
    for title in ("prompt", "unhealed", "healed", "healed inside the grammar", "the grammar"):
        table.add_column(title, overflow="fold")
    for case in CASES:
        unhealed = generator.generate(case.prompt, heal="off", **options)
        healed = generator.generate(case.prompt, **options)
        inside = generator.generate(
            case.prompt, case.grammar, prefill=case.prefill, **options | {"max_new_tokens": 2 * NEW_TOKENS}
        )
        row = [shown(case.prompt, 40), shown(unhealed), Text.assemble((shown(healed).plain, "green"))]
        table.add_row(*row, Text.assemble((shown(inside).plain, "bold green")), shown(case.shown, 40))
    console.print(table)
    console.print(f"{len(CASES)} prompts, {time.perf_counter() - started:.0f} s with loading", highlight=False)


if __name__ == "__main__":
    main()
