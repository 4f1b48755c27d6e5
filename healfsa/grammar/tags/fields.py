"""The fields of one object of a structural tag, each of the type that it must have.

In: a JSON object and where it stands. Out: checked values; a wrong one is a `SchemaError` with the field's pointer.
Idea: whoever needs a field names its type; a field that is missing or null has its default, or is an error without one.
    At the end the fields that nobody read are known: an unknown one is refused, because a misspelled bound is no bound.
Cost: a type check a field.
Source: own.
Not here: what fields mean (structural).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from healfsa.arguments import shown
from healfsa.errors import SchemaError

NEEDED: Any = object()  # the default of a field that must be there

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Place:
    """An object and its JSON pointer."""

    value: Mapping[str, Any]
    pointer: str
    read: set[str] = field(default_factory=lambda: {"type"})

    @classmethod
    def of(cls, value: Any, pointer: str, what: str) -> Place:
        """Return the place of `what`, which must be an object."""
        if not isinstance(value, Mapping):
            raise SchemaError(f"{what} is an object, not {shown(value)}", pointer, "type")
        return cls(value, pointer)

    def at(self, name: str) -> str:
        """Return the pointer of a field."""
        return f"{self.pointer}/{name}"

    def raw(self, name: str, default: Any = None) -> Any:
        """Return a field as it is; the default where it is missing or null."""
        self.read.add(name)
        value = self.value.get(name)
        if value is not None:
            return value
        if default is NEEDED:
            raise SchemaError(f"the field {name!r} is missing", self.pointer, name)
        return default

    def finish(self) -> None:
        """Refuse fields that nobody read."""
        for name, value in self.value.items():
            if value is not None and name not in self.read:
                hint = f"known: {', '.join(sorted(self.read))}"
                raise SchemaError(f"unknown field {shown(name)}", self.pointer, str(name), hint=hint)

    def wrong(self, name: str, wanted: str) -> SchemaError:
        """Return the error of a field that is not what it must be."""
        return SchemaError(f"{name!r} must be {wanted}, not {shown(self.value.get(name))}", self.at(name), name)

    def _typed(self, name: str, kind: type | tuple[type, ...], wanted: str, default: Any) -> Any:
        value = self.raw(name, default)
        if value is default or (isinstance(value, kind) and (kind is bool or not isinstance(value, bool))):
            return value
        raise self.wrong(name, wanted)

    def text(self, name: str, default: Any = NEEDED) -> str:
        """Return a string."""
        return self._typed(name, str, "a string", default)

    def whole(self, name: str, default: Any = NEEDED) -> int:
        """Return an integer."""
        return self._typed(name, int, "an integer", default)

    def flag(self, name: str, default: bool = False) -> bool:
        """Return a truth value."""
        return self._typed(name, bool, "true or false", default)

    def name(self, name: str, allowed: tuple[str, ...]) -> str:
        """Return one of some words, the first of them by default."""
        found = self.text(name, allowed[0])
        if found not in allowed:
            raise self.wrong(name, f"one of {', '.join(allowed)}")
        return found

    def schema(self, name: str) -> Any:
        """Return a JSON Schema: an object or a truth value."""
        value = self.raw(name, NEEDED)
        if not isinstance(value, (Mapping, bool)):
            raise self.wrong(name, "a JSON Schema")
        return value

    def each(self, name: str, read: Callable[[Any, str], T], default: Any = NEEDED) -> list[T]:
        """Return the entries of an array, read one by one with their pointers."""
        entries = self._typed(name, list, "an array", default)
        return [read(entry, f"{self.at(name)}/{number}") for number, entry in enumerate(entries)]

    def texts(self, name: str, default: Any = NEEDED) -> list[str]:
        """Return an array of strings."""
        return self.each(name, text_at, default)


def text_at(value: Any, pointer: str) -> str:
    """Return an entry that must be a string."""
    if not isinstance(value, str):
        raise SchemaError(f"a string is needed, not {shown(value)}", pointer)
    return value


def token_at(value: Any, pointer: str) -> int | str:
    """Return an entry that must be a token: an id or a name."""
    if isinstance(value, (int, str)) and not isinstance(value, bool):
        return value
    raise SchemaError(f"a token is an id or a name, not {shown(value)}", pointer)
