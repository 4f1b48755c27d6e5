"""Errors on the terminal: what, where, what to do, and an exit code that names the kind.

In: an exception of the error tree. Out: lines on standard error and an exit code.
Idea: one table says which class has which exit code, for the program and for the help.
Not here: usage errors (the argument parser's own, exit code 2).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import typer
from rich.console import Console
from rich.text import Text

from healfsa import errors

EXIT_CODES: tuple[tuple[type[BaseException], int, str], ...] = (
    (errors.MissingExtra, 8, "an optional package is not installed"),
    (errors.GrammarError, 3, "the grammar (pattern, schema) is wrong, empty, or cannot be enforced"),
    (errors.LimitExceeded, 4, "a limit on time, memory or states was met"),
    (errors.VocabularyError, 5, "the tokenizer cannot be read, or cannot spell the grammar"),
    (errors.PromptError, 6, "the prompt or prefill contradicts the grammar"),
    (errors.MatcherError, 7, "a token was not allowed"),
    (errors.HealFSAError, 1, "anything else, a model that cannot be loaded for example"),
)


def exit_code(failure: BaseException) -> int:
    """Return the exit code of a failure."""
    return next((code for kind, code, _ in EXIT_CODES if isinstance(failure, kind)), 1)


def exit_code_help() -> str:
    """Return the list of exit codes, for the help text."""
    lines = ["0  all went well", "2  the command line was wrong"]
    lines += [f"{code}  {meaning}" for _, code, meaning in EXIT_CODES]
    return "Exit codes:\n\n" + "\n\n".join(sorted(lines))


def friendly(command: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a command: errors of the tree become text and an exit code, no traceback."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            return command(*args, **kwargs)
        except errors.HealFSAError as failure:
            show(failure)
            raise typer.Exit(exit_code(failure)) from None
        except BrokenPipeError:
            raise  # whoever read the output has enough; the argument parser ends quietly
        except OSError as failure:
            show(errors.HealFSAError(_what(failure)))
            raise typer.Exit(1) from None
        except MemoryError:
            show(errors.HealFSAError("there is not enough memory for this", hint="a smaller model or grammar"))
            raise typer.Exit(1) from None

    return run


def _what(failure: OSError) -> str:
    """Return what went wrong with which file."""
    if failure.filename is None or failure.strerror is None:
        return str(failure)
    return f"{failure.filename}: {failure.strerror}"


def show(failure: errors.HealFSAError) -> None:
    """Print a failure on standard error."""
    console = Console(stderr=True, soft_wrap=True, highlight=False)
    console.print(Text("error: ", style="bold red") + Text(failure.message))
    if failure.hint:
        console.print(Text("hint: ", style="bold cyan") + Text(failure.hint))
