"""The commands and their help.

In: arguments. Out: calls of the modules beside this one.
Idea: each command declares its options here and does its work in its own module, imported when it runs.
Not here: the work.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from healfsa.cli.errors import exit_code_help, friendly
from healfsa.cli.inputs import among, checked_policy, finite
from healfsa.cli.library import library
from healfsa.cli.serve import serve

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    add_completion=False,
    pretty_exceptions_enable=False,
    help=(
        "Token healing and structured generation: continue a prompt from where it was cut, inside a grammar.\n\n"
        "Try first:\n\n"
        '- `healfsa heal "The capital of Fra"` shows what healing does to a prompt\n'
        '- `healfsa generate "The capital of Fra"` continues it with the embedded model\n'
        '- `healfsa generate "x.re" --regex "(duce|turn|place)\\("` continues it inside a pattern\n'
        '- `healfsa inspect "a(b|c)+"` shows how a pattern becomes an automaton'
    ),
    epilog=exit_code_help(),
)

app.add_typer(library, name="library")

Regex = Annotated[str | None, typer.Option("--regex", "-r", help="Pattern that the continuation must match in full.")]
Dialect = Annotated[
    str, typer.Option(callback=among("python", "ecma"), metavar="python|ecma", help="Dialect of the pattern.")
]
Choices = Annotated[
    list[str] | None, typer.Option("--choice", "-c", help="Allowed continuation; give it several times.")
]
Schema = Annotated[str | None, typer.Option("--schema", "-s", help="JSON Schema: a file, or the JSON text itself.")]
Model = Annotated[
    str | None, typer.Option("--model", "-m", help="Folder or hub name of a transformers model; default: embedded.")
]
Tokenizer = Annotated[
    str | None, typer.Option("--tokenizer", "-t", help="tokenizer.json or its folder; default: embedded.")
]
POLICY = "auto, exact (as auto; the model weighs the covers), off, one, or a number of tokens."
Heal = Annotated[str, typer.Option("--heal", callback=checked_policy, help=f"Healing: {POLICY}")]
Policy = Annotated[str, typer.Option("--policy", "-p", callback=checked_policy, help=f"Healing: {POLICY}")]
Prefill = Annotated[str | None, typer.Option(help="Tail of the prompt that already lies inside the grammar.")]
Prompt = Annotated[str, typer.Argument(help="The text to continue; - reads standard input.")]


@app.command()
@friendly
def generate(
    prompt: Prompt,
    regex: Regex = None,
    dialect: Dialect = "python",
    choice: Choices = None,
    schema: Schema = None,
    heal: Heal = "auto",
    prefill: Prefill = None,
    model: Model = None,
    max_tokens: Annotated[int, typer.Option("--max-tokens", "-n", min=1, max=10**6, help="Budget of new tokens.")] = 64,
    stop: Annotated[list[str] | None, typer.Option(help="End before this text; give it several times.")] = None,
    temperature: Annotated[float, typer.Option(callback=finite, min=0.0, help="0: greedy.")] = 0.0,
    seed: Annotated[int | None, typer.Option(min=0, max=2**63 - 1, help="For sampling.")] = None,
    echo: Annotated[bool, typer.Option("--echo", help="Print the prompt too.")] = False,
) -> None:
    """Continue PROMPT and stream what follows it to standard output.

    Examples:

    - `healfsa generate 'The capital of Fra'`
    - `printf 'def f(x):\\n    ret' | healfsa generate -`
    - `healfsa generate 'x.re' --regex '(duce|turn|place)\\('`
    - `healfsa generate 'The answer is ' --choice yes --choice no`
    - `healfsa generate '{"name": "B' --schema person.json --prefill '{"name": "B'`
    """
    from healfsa.cli.generate import run

    options = {"max_new_tokens": max_tokens, "stop": stop or (), "temperature": temperature, "seed": seed}
    run(prompt, (regex, dialect, choice, schema), heal, prefill, model, options, echo)


@app.command()
@friendly
def heal(
    prompt: Prompt,
    policy: Policy = "auto",
    regex: Regex = None,
    dialect: Dialect = "python",
    choice: Choices = None,
    schema: Schema = None,
    prefill: Prefill = None,
    tokenizer: Tokenizer = None,
    parse_special: Annotated[bool, typer.Option(help="Read spellings of special tokens as those tokens.")] = False,
    show: Annotated[int, typer.Option(min=0, help="How many of the tokens that may follow to show.")] = 12,
    explain: Annotated[
        bool, typer.Option("--explain", help="Weigh with a model what may follow, without a grammar.")
    ] = False,
    model: Model = None,
    over: Annotated[
        str, typer.Option(callback=among("canonical", "all"), help="With --explain: the covers that count.")
    ] = "canonical",
    svg: Annotated[Path | None, typer.Option(help="With --explain: draw the tree of covers into this file.")] = None,
) -> None:
    """Show where PROMPT is cut: the pieces that are kept, the bytes that are owed, and which tokens may follow.

    Examples:

    - `healfsa heal 'https:'`
    - `healfsa heal 'x.re' --regex '(duce|turn|place)\\('`
    - `healfsa heal 'das Ei' --policy 2 --tokenizer path/to/tokenizer.json`
    - `healfsa heal 'The company hired an intermed' --explain --svg covers.svg`
    """
    if explain:
        from healfsa.cli.explain import run as explained

        explained(prompt, policy, model, parse_special, over, show, svg)
        return
    from healfsa.cli.heal import run

    run(prompt, policy, (regex, dialect, choice, schema), prefill, tokenizer, parse_special, show)


@app.command(name="compile")
@friendly
def compile_(
    regex: Regex = None,
    dialect: Dialect = "python",
    choice: Choices = None,
    schema: Schema = None,
    tokenizer: Tokenizer = None,
    states: Annotated[int, typer.Option(min=1, help="How many states to walk ahead for the figures.")] = 200,
) -> None:
    """Compile a grammar for a vocabulary; print its size and what its masks cost.

    Examples:

    - `healfsa compile --regex '[0-9]{4}-[0-9]{2}-[0-9]{2}'`
    - `healfsa compile --schema person.json --tokenizer path/to/tokenizer.json`
    """
    from healfsa.cli.compile import run

    run((regex, dialect, choice, schema), tokenizer, states)


@app.command()
@friendly
def inspect(
    pattern: Annotated[str, typer.Argument(help="A regular expression.")],
    dialect: Dialect = "python",
    text: Annotated[str | None, typer.Option(help="A text to test: where does it stop fitting?")] = None,
    dot: Annotated[Path | None, typer.Option(help="Write the automaton as a Graphviz file.")] = None,
    svg: Annotated[Path | None, typer.Option(help="Write the automaton as a picture.")] = None,
    max_states: Annotated[int, typer.Option(min=1, help="Draw at most so many states.")] = 40,
) -> None:
    """Show the stages of PATTERN: expression tree, automaton, and what it accepts.

    Examples:

    - `healfsa inspect '(duce|turn|place)\\('`
    - `healfsa inspect '[a-f]{2,4}' --svg automaton.svg`
    - `healfsa inspect '\\d+-\\d+' --text 12-x`
    """
    from healfsa.cli.inspect import run

    run(pattern, dialect, text, dot, svg, max_states)


@app.command()
@friendly
def warmup(
    model: Annotated[bool, typer.Option(help="Convert the embedded model too, if its wheel is installed.")] = True,
) -> None:
    """Do ahead what the first use would do: compile the kernels, read the vocabulary, convert the embedded model.

    Examples:

    - `healfsa warmup`
    - `healfsa warmup --no-model`
    """
    from healfsa.cli.warmup import run

    run(model)


@app.command()
@friendly
def bench(
    tokenizer: Annotated[
        list[str] | None, typer.Option("--tokenizer", "-t", help="tokenizer.json or its folder; default: embedded.")
    ] = None,
    cases: Annotated[Path | None, typer.Option(help="Grammars and texts: a TOML file like bench_cases.toml.")] = None,
    out: Annotated[Path | None, typer.Option("--json", help="Write the figures to this file.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Write a plot to this file (needs matplotlib).")] = None,
    profile: Annotated[str | None, typer.Option(help="Show where one grammar (its name) spends its time.")] = None,
    growth: Annotated[bool, typer.Option("--growth", help="Against the numbers that a grammar names.")] = False,
    gpu: Annotated[bool, typer.Option("--gpu", help="The kernels of a device.")] = False,
    end_to_end: Annotated[bool, typer.Option("--end-to-end", help="A model with and without a schema.")] = False,
    model: Model = None,
    tokens: Annotated[int, typer.Option(min=8, max=2000, help="Of --end-to-end: tokens a turn.")] = 96,
    repeat: Annotated[int, typer.Option(min=1, max=99, help="Runs an engine; medians are shown.")] = 3,
) -> None:
    """Measure this engine beside the others that are installed (llguidance, xgrammar): CPU times, with ratios.

    Examples:

    - `healfsa bench --json bench.json --plot bench.svg`
    - `healfsa bench --tokenizer path/to/tokenizer.json --profile "nested order"`
    - `healfsa bench --growth --plot growth.svg` (several `--tokenizer`: growth with their size)
    - `healfsa bench --end-to-end` (a `--model` of transformers; default: embedded)
    """
    if gpu:
        from healfsa.cli import bench_gpu

        bench_gpu.run(out=out)
    elif end_to_end:
        from healfsa.cli import bench_model

        bench_model.run(model, tokens, repeat, out)
    elif growth:
        from healfsa.cli import bench_growth

        bench_growth.run([Path(t) for t in tokenizer or ()] or [None], out, plot)
    else:
        from healfsa.cli import bench as side_by_side

        side_by_side.run(tokenizer[0] if tokenizer else None, cases, out, plot, profile, repeat)


@app.command(name="bench-healing")
@friendly
def bench_healing(
    data: Annotated[
        Path | None,
        typer.Option(help="JSON Lines of domain, text, cut, b; default: cuts through the standard library's sources."),
    ] = None,
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="Examples of each domain.")] = 100,
    repeat: Annotated[bool, typer.Option("--repeat", help="Show each text in full before its cut copy.")] = False,
    model: Model = None,
    begin: Annotated[int | None, typer.Option(min=0, help="Id before every prompt; default: end of text.")] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder of the table, the plot and the answers.")] = Path(),
) -> None:
    """Measure how often the rest of a token that the prompt cuts in two is found, healed and unhealed.

    Example: `healfsa bench-healing -n 20 --repeat -o results`
    """
    from healfsa.cli.bench_healing import run

    run(model, data, count, repeat, begin, out)


app.command()(serve)


def _version(value: bool) -> None:
    if value:
        import healfsa

        typer.echo(healfsa.__version__)
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print it.")] = False,
) -> None:
    pass
