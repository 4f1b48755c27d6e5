"""The error tree: every failure that a user can cause.

In: facts about a failure (span, pointer, token, bytes). Out: an exception whose text says what, where and what to do.
Idea: the class says which kind of thing is wrong; the attributes say where, so that programs need not parse the text.
Not here: when to raise; each room decides that.
"""

from __future__ import annotations

from typing import Any


class HealFSAError(Exception):
    """Base of every error of this package.

    Parameters
    ----------
    message : str
        What is wrong and where.
    hint : str, optional
        What the user can do about it; printed behind the message.
    """

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\nhint: {self.hint}" if self.hint else self.message

    def __reduce__(self) -> tuple[Any, ...]:  # an error crosses to other processes with its text and its attributes
        return _rebuilt, (type(self), self.args), self.__dict__


def _rebuilt(kind: type[HealFSAError], args: tuple[Any, ...]) -> HealFSAError:
    """Return an error of a class without making its text again: only the built-in class behind ours begins it."""
    made = kind.__new__(kind, *args)
    super(HealFSAError, made).__init__(*args)
    return made


class GrammarError(HealFSAError, ValueError):
    """A grammar (pattern, schema, format) cannot be used as it is."""


class RegexSyntaxError(GrammarError):
    """A pattern that its dialect does not accept.

    Attributes
    ----------
    pattern : str
        The whole pattern.
    span : tuple[int, int]
        Start and end (code points, half open) of the faulty part.
    """

    def __init__(self, message: str, pattern: str, span: tuple[int, int], *, hint: str = "") -> None:
        super().__init__(f"{message}\n{caret(pattern, span)}", hint=hint)
        self.reason = message
        self.pattern = pattern
        self.span = span


class TextGrammarError(GrammarError):
    """A text grammar (GBNF, Lark) that cannot be read; `line` and `column` are 1-based."""

    def __init__(self, message: str, text: str, line: int, column: int, *, hint: str = "") -> None:
        shown = text.splitlines()[line - 1] if 0 < line <= len(text.splitlines()) else ""
        super().__init__(f"line {line}, column {column}: {message}\n{caret(shown, (column - 1, column))}", hint=hint)
        self.line = line
        self.column = column


class SchemaError(GrammarError):
    """A JSON Schema that is not one, or contradicts itself; `pointer` is a JSON pointer into the schema."""

    def __init__(self, message: str, pointer: str = "", keyword: str = "", *, hint: str = "") -> None:
        super().__init__(f"at {pointer or '#'}: {message}", hint=hint)
        self.pointer = pointer
        self.keyword = keyword


class SchemaLoop(SchemaError):
    """A schema that refers to itself with nothing between, so that it says nothing."""


class UnsupportedFeature(GrammarError):
    """Something valid that cannot be enforced exactly; never silently loosened.

    Attributes
    ----------
    feature : str
        The construct, by its usual name.
    pointer : str
        JSON pointer of the place in a schema; empty for patterns.
    instead : str
        What can be written instead.
    """

    def __init__(
        self,
        feature: str,
        *,
        pointer: str = "",
        instead: str = "",
        pattern: str = "",
        span: tuple[int, int] | None = None,
        detail: str = "",
    ) -> None:
        where = f"at {pointer}: " if pointer else ""
        text = f"{where}{feature} cannot be enforced exactly" + (f": {detail}" if detail else "")
        if pattern and span is not None:
            text += f"\n{caret(pattern, span)}"
        super().__init__(text, hint=instead)
        self.feature = feature
        self.pointer = pointer
        self.instead = instead
        self.pattern = pattern
        self.span = span


class EmptyLanguage(GrammarError):
    """The grammar accepts no text at all.

    Attributes
    ----------
    pointer : str
        JSON pointer of the contradiction in a schema, where it is known.
    pattern : str
        The pattern that no text matches; empty where none is known.
    span : tuple[int, int] or None
        The part of the pattern that contradicts the rest, or all of it.
    """

    def __init__(
        self,
        message: str,
        pointer: str = "",
        *,
        hint: str = "",
        pattern: str = "",
        span: tuple[int, int] | None = None,
    ) -> None:
        text = f"at {pointer}: {message}" if pointer else message
        super().__init__(f"{text}\n{caret(pattern, span)}" if pattern and span is not None else text, hint=hint)
        self.pointer = pointer
        self.pattern = pattern
        self.span = span


class LimitExceeded(HealFSAError):
    """A compile or a walk needed more than its `Limits` allow.

    Attributes
    ----------
    limit : str
        Name of the field of `Limits`.
    given, allowed : float
        What was asked for, and what the limit is (in the limit's unit).
    stage : str
        Where it happened: "load", "emptiness", "walk", ...
    """

    def __init__(self, limit: str, given: float, allowed: float, stage: str) -> None:
        super().__init__(
            f"{stage}: needs more than the limit of {allowed:g} {limit} (asked for {given:g})",
            hint=f"raise it with healfsa.Limits({limit}=...), or make the grammar smaller",
        )
        self.limit = limit
        self.given = given
        self.allowed = allowed
        self.stage = stage


class VocabularyError(HealFSAError, ValueError):
    """A tokenizer that cannot be read, or token ids that are not in the vocabulary."""


class IncompatibleVocabulary(VocabularyError):
    """No token of the vocabulary can make bytes that the grammar needs; `bytes` names them."""

    def __init__(self, message: str, missing: bytes = b"", *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.bytes = missing


class PromptError(HealFSAError, ValueError):
    """A prompt or prefill that contradicts the grammar, or cannot be healed.

    Attributes
    ----------
    owed : bytes
        The bytes still to be written where the contradiction showed.
    offset : int
        Byte offset of the first byte that does not fit.
    """

    def __init__(self, message: str, owed: bytes = b"", offset: int = 0, *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.owed = owed
        self.offset = offset


class MatcherError(HealFSAError, RuntimeError):
    """A matcher was used in a way that its state does not allow; the matcher is unchanged."""


class TokenRejected(MatcherError):
    """A token that the grammar does not allow here; `token_id` and its `bytes` (None: it has none)."""

    def __init__(self, message: str, token_id: int, token_bytes: bytes | None = None, *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.token_id = token_id
        self.bytes = token_bytes


class Terminated(MatcherError):
    """A token was given after the end of the text."""


class RollbackTooFar(MatcherError):
    """More tokens were to be taken back than were accepted: `asked` against `kept`."""

    def __init__(self, asked: int, kept: int) -> None:
        message = f"cannot roll back {asked} tokens: only {kept} were accepted"
        super().__init__(message, hint=f"roll back at most {kept}")
        self.asked = asked
        self.kept = kept


class MaskShapeError(HealFSAError, ValueError):
    """An array of the wrong dtype, width, layout or device; `expected` against `got`."""

    def __init__(self, message: str, expected: object, got: object, *, hint: str = "") -> None:
        super().__init__(f"{message}: expected {_text(expected)}, got {_text(got)}", hint=hint)
        self.expected = expected
        self.got = got


class MissingExtra(HealFSAError, ImportError):
    """An optional package is not installed; `extra` is the name to install."""

    def __init__(self, extra: str, package: str) -> None:
        super().__init__(f"the package {package} is needed for this", hint=f"pip install 'healfsa[{extra}]'")
        self.extra = extra
        self.package = package


def _text(value: object) -> str:
    try:
        return str(value)
    except ValueError:  # whole numbers of thousands of digits
        return "a number too long to print"


def caret(text: str, span: tuple[int, int]) -> str:
    """Return `text` on one line with carets under `span` (code points), long texts and long spans cut."""
    start, end = span[0], min(span[1], span[0] + 120)
    left = max(0, start - 60)
    shown = text[left : max(end, start + 1) + 60]
    visible = "".join(c if c.isprintable() else "·" for c in shown)
    return f"  {visible}\n  {' ' * (start - left)}{'^' * max(1, min(end, left + len(shown)) - start)}"


class SearchCut(UserWarning):
    """A part of a grammar was forbidden because no search within the limits could show that it can be finished.

    What is generated is valid all the same; something valid may be missing. `Limits(search=...)` raises the bound.
    """
