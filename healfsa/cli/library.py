"""`healfsa library`: the ready grammars and tool styles.

In: names and topics. Out: tables and examples on standard output; exit code 1 where an example of a file does not hold.
Idea: three small commands over `healfsa.library`, which is imported when one of them runs.
Not here: the grammars.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from healfsa.cli.errors import friendly

library = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Ready grammars (dates, addresses, code, ...) and the tool-call formats of models.",
)

Topic = Annotated[str, typer.Argument(help="A topic such as iso8601 or tools, or one name; left out: all.")]
Name = Annotated[str, typer.Argument(help="A name such as iso8601/date or tools/hermes.")]


NEW = "Check one file that is not in the library yet."


def _some(found: Sequence[Any], name: str) -> None:
    if not found:
        raise typer.BadParameter(f"nothing is called {name!r}; `healfsa library list` shows all.", param_hint="NAME")


@library.command(name="list")
@friendly
def list_(topic: Topic = "") -> None:
    """List the grammars and formats.

    Examples:

    - `healfsa library list`
    - `healfsa library list tools`
    """
    from healfsa.library import entries

    found = entries(topic)
    width = max((len(entry.name) for entry in found), default=0)
    for entry in found:
        typer.echo(f"{entry.name:<{width}}  {entry.kind:<11}  {entry.description}")
    _some(found, topic)


@library.command()
@friendly
def show(
    name: Name, source: Annotated[bool, typer.Option("--source", help="Print the data file itself.")] = False
) -> None:
    """Show what a grammar accepts and refuses.

    Examples:

    - `healfsa library show iso8601/date`
    - `healfsa library show tools/harmony --source`
    """
    from healfsa.grammar.tags import data
    from healfsa.library import entry

    _some([found for found in data.names() if found == name], name)
    found = entry(name)
    if source:
        typer.echo((data.folder() / f"{name}.toml").read_text(encoding="utf-8"), nl=False)
        return
    typer.echo(f"{found.name} ({found.kind})\n{found.description}\nsource: {found.source}")
    for title, texts in (("accepts", found.accepts), ("refuses", found.rejects)):
        typer.echo(f"{title}:" if texts else f"{title}: nothing listed")
        for text in texts:
            typer.echo("  " + text.replace("\n", "\n  ") if text.strip() else f"  {text!r}")


@library.command()
@friendly
def test(
    topic: Topic = "",
    file: Annotated[Path | None, typer.Option("--file", exists=True, dir_okay=False, help=NEW)] = None,
) -> None:
    """Check the examples in the data files.

    Examples:

    - `healfsa library test`
    - `healfsa library test tools/hermes`
    - `healfsa library test --file my-style.toml`
    """
    from healfsa.library import check, check_file, entries

    names = [entry.name for entry in entries(topic)]
    _some(names, topic)
    failures = check_file(file) if file is not None else tuple(f for name in names for f in check(name))
    for failure in failures:
        typer.echo(f"{failure.name}: {failure.text!r} {failure.what}")
    if failures:
        raise typer.Exit(1)
    typer.echo("the examples hold" if file is not None else f"the examples of {len(names)} files hold")
