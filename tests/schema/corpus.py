"""The corpus of schema cases, and the three judges that each case is put to.

Not here: the cases (tests/data/schema/*.toml).
"""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema

from healfsa.automaton import Automaton
from healfsa.grammar import json_schema

FOLDER = Path(__file__).parents[1] / "data" / "schema"
VALIDATORS = {
    "4": jsonschema.Draft4Validator,
    "6": jsonschema.Draft6Validator,
    "7": jsonschema.Draft7Validator,
    "2019-09": jsonschema.Draft201909Validator,
    "2020-12": jsonschema.Draft202012Validator,
}


@dataclass(frozen=True, slots=True)
class Case:
    """One schema with texts that it accepts and refuses; `oracle` says why jsonschema is not asked."""

    name: str
    schema: Any
    valid: tuple[str, ...]
    invalid: tuple[str, ...]
    draft: str | None = None
    oracle: str = ""


def cases(kinds: tuple[str, ...] = ("numbers", "strings", "arrays", "objects", "logic")) -> list[Case]:
    """Return the cases of the named files."""
    found = []
    for kind in kinds:
        for entry in tomllib.loads((FOLDER / f"{kind}.toml").read_text())["case"]:
            entry = {**entry, "schema": json.loads(entry["schema"])}
            found.append(Case(**{**entry, "valid": tuple(entry["valid"]), "invalid": tuple(entry["invalid"])}))
    return found


class Judge:
    """Decides texts by the automaton of a schema in a style."""

    def __init__(self, schema: Any, style: Any = None, draft: str | None = None, **options: Any) -> None:
        self.automaton = Automaton.from_expression(json_schema(schema, style, draft, **options).expression)

    def accepts(self, text: str) -> bool:
        state = self.automaton.step(self.automaton.start, text.encode())
        return bool(state) and self.automaton.is_accepting(state)


def oracle(case: Case) -> Any:
    """Return the validator of the jsonschema package, formats asserted."""
    return validator_of(case.schema, case.draft)


def validator_of(schema: Any, draft: str | None = None) -> Any:
    """Return the validator for the draft that a schema declares, or for `draft`."""
    declared = schema.get("$schema") if isinstance(schema, dict) else None
    kind = VALIDATORS[draft or "2020-12"] if not declared else jsonschema.validators.validator_for(schema)
    return kind(schema, format_checker=kind.FORMAT_CHECKER)


def ordered(value: Any, names: list[str]) -> Any:
    """Return the value with the members of the outermost object in the order of `names`, others behind."""
    if not isinstance(value, dict):
        return value
    return {k: value[k] for k in [*(n for n in names if n in value), *(k for k in value if k not in names)]}
