"""`healfsa serve`: an OpenAI-compatible server.

In: the options. Out: a running server, until it is told to stop.
Idea: everything that can be wrong is found before the model is loaded.
Not here: the server itself (see healfsa.server).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from healfsa.cli.errors import friendly
from healfsa.cli.inputs import among, checked_policy, policy
from healfsa.errors import MissingExtra

DTYPES = ("float32", "bfloat16", "float16")
LOOPBACK = ("127.0.0.1", "localhost", "::1")
KINDS = ("auto", "vllm", "sglang", "llamacpp")

Models = Annotated[
    list[str] | None,
    typer.Option("--model", "-m", help="Folder or name of a model, or NAME=FOLDER; several times. Default: embedded."),
]
Keys = Annotated[
    list[str] | None,
    typer.Option("--api-key", help="Key that clients must send; several. Default: the one in HEALFSA_API_KEY, if set."),
]
Unknown = Annotated[
    str,
    typer.Option(callback=among("error", "warn"), metavar="error|warn", help="Unknown fields: refuse or name them."),
]
UpstreamKey = Annotated[str | None, typer.Option(envvar="HEALFSA_UPSTREAM_KEY", help="Key for the upstream.")]


@friendly
def serve(
    model: Models = None,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", "-p", min=0, max=65535, help="Port; 0: any free one.")] = 8000,
    api_key: Keys = None,
    api_key_file: Annotated[
        Path | None, typer.Option(exists=True, dir_okay=False, help="File with one key a line.")
    ] = None,
    heal: Annotated[str, typer.Option(callback=checked_policy, help="Healing of requests that name none.")] = "exact",
    rows: Annotated[int, typer.Option(min=1, help="Sequences that run at once.")] = 32,
    queue: Annotated[int, typer.Option(min=1, help="Requests that may wait; more are answered with 429.")] = 64,
    seconds: Annotated[float, typer.Option(min=1, help="Time limit of a request.")] = 300.0,
    cache_tokens: Annotated[int, typer.Option(min=64, help="Bound on rows times columns of the cache.")] = 131_072,
    prefix_mb: Annotated[int, typer.Option(min=0, help="Memory for prompts that others begin with.")] = 256,
    grammar_mb: Annotated[int, typer.Option(min=1, help="Memory for compiled grammars, and again for masks.")] = 256,
    tool_style: Annotated[
        str, typer.Option(callback=checked_style, help="Format of tool calls; auto recognises the model's.")
    ] = "auto",
    device: Annotated[str | None, typer.Option(help="Device of the models, for example cuda.")] = None,
    dtype: Annotated[
        str | None, typer.Option(callback=among(*DTYPES), metavar="|".join(DTYPES), help="Type of the weights.")
    ] = None,
    unknown_fields: Unknown = "error",
    upstream: Annotated[
        str | None, typer.Option(callback=checked_url, help="Serve a vLLM, SGLang or llama.cpp server at this URL.")
    ] = None,
    upstream_kind: Annotated[
        str, typer.Option(callback=among(*KINDS), metavar="|".join(KINDS), help="What the upstream is.")
    ] = "auto",
    upstream_key: UpstreamKey = None,
    tokenizer: Annotated[str | None, typer.Option("--tokenizer", "-t", help="The upstream model's tokenizer.")] = None,
    playground: Annotated[bool, typer.Option(help="The page at /.")] = True,
) -> None:
    """Serve models with OpenAI's routes: every prompt is healed, every constraint is kept, streams carry only the rest.

    Examples:

    - `healfsa serve`
    - `healfsa serve -m path/to/model -m small=path/to/another --port 9000 --api-key secret`
    - `healfsa serve --upstream http://127.0.0.1:8001 --tokenizer path/to/tokenizer`
    """
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    _check_models(model or [""], upstream, tokenizer)
    keys = _keys(api_key, api_key_file)
    _needed()
    from healfsa.server import Settings

    settings = Settings(
        api_keys=keys, rows=rows, queue=queue, request_seconds=seconds,
        cache_tokens=cache_tokens, prefix_bytes=prefix_mb << 20, grammar_bytes=grammar_mb << 20, heal=policy(heal),
        tool_style=tool_style, unknown_fields=unknown_fields, playground=playground,
    )  # fmt: skip
    options = {key: value for key, value in (("device_map", device), ("dtype", dtype)) if value is not None}
    if upstream is not None:
        served, metrics = _upstream(settings, upstream, upstream_kind, upstream_key, tokenizer, model)
    else:
        served, metrics = _embedded(settings, model or [""], options)
    if not keys and host not in LOOPBACK:
        typer.echo(f"anyone who reaches {host} can use this server: --api-key asks for a key", err=True)
    _run(served, settings, metrics, host, port)


def checked_url(url: str | None) -> str | None:
    """Return the value of an option that names a server, if it can be one."""
    if url is not None and not url.startswith(("http://", "https://")):
        raise typer.BadParameter(f"{url!r} does not begin with http:// or https://.")
    return url


def checked_style(name: str) -> str:
    """Return the value of --tool-style, if there is such a style."""
    from healfsa.library import style_names

    if name != "auto" and name not in style_names():
        raise typer.BadParameter(f"{name!r} is not one of auto, {', '.join(style_names())}.")
    return name


def _needed() -> None:
    for package in ("starlette", "uvicorn", "prometheus_client", "anyio"):
        try:
            __import__(package)
        except ImportError as missing:
            raise MissingExtra("serve", package) from missing


def _check_models(models: list[str], upstream: str | None, tokenizer: str | None) -> None:
    """Refuse models of one name, and options that would have no effect."""
    if upstream is not None and len(models) > 1:
        raise typer.BadParameter("an upstream has one model.", param_hint="--model")
    if upstream is None and tokenizer is not None:
        raise typer.BadParameter("it is that of an upstream's model: say --upstream, too.", param_hint="--tokenizer")
    names = [named(text)[0] for text in models]
    for name in names:
        if not name or names.count(name) > 1:
            what = "more than one model is" if name else "a model is"
            raise typer.BadParameter(f"{what} called {name!r}: say NAME=FOLDER.", param_hint="--model")


def _keys(given: Sequence[str] | None, path: Path | None) -> tuple[str, ...]:
    """Return the keys that clients may send; an option that gives none would leave the server open."""
    inherited = os.environ.get("HEALFSA_API_KEY")  # read here: as an option's own variable "" would be none, "a b" two
    hint = "--api-key" if given or inherited is None else "HEALFSA_API_KEY"
    listed = [key.strip() for key in given or ([] if inherited is None else [inherited])]
    if not all(listed):
        raise typer.BadParameter("a key must not be empty.", param_hint=hint)
    if path is not None:
        try:
            inside = path.read_text(encoding="utf-8").split()
        except UnicodeDecodeError:
            raise typer.BadParameter("it is no text.", param_hint="--api-key-file") from None
        if not inside:
            raise typer.BadParameter("there is no key in it.", param_hint="--api-key-file")
        listed += inside
    return tuple(listed)


def named(text: str) -> tuple[str, str | None]:
    """Return the name that requests use and what to load; "" is the embedded model."""
    if not text:
        return "smollm2", None
    name, equals, place = text.partition("=")
    return (name, place) if equals else (Path(text).name or text, text)


def _embedded(settings: Any, models: list[str], options: dict[str, Any]) -> tuple[list[Any], Any]:
    import healfsa
    from healfsa.server import Metrics, serve_model

    metrics = Metrics()
    served = []
    for text in models:
        name, place = named(text)
        typer.echo(f"loading {name}", err=True)
        model, tokenizer = healfsa.models.load(place, **options)
        served.append(serve_model(name, model, tokenizer, settings, metrics))
    return served, metrics


def _upstream(
    settings: Any, url: str, kind: str, key: str | None, tokenizer: str | None, models: list[str] | None
) -> tuple[list[Any], Any]:
    import healfsa
    from healfsa.server import Metrics
    from healfsa.server.gateway import serve_upstream

    metrics = Metrics()
    loaded = healfsa.models.load_tokenizer(tokenizer)
    name = models[0] if models else None
    return [serve_upstream(url, loaded, settings, metrics, kind=kind, key=key, name=name)], metrics


def _run(served: list[Any], settings: Any, metrics: Any, host: str, port: int) -> None:
    import uvicorn

    from healfsa.server import create_app

    app = create_app(served, settings, metrics)
    names = ", ".join(each.name for each in served)
    typer.echo(f"serving {names} at http://{host}:{port or '(a free port, see below)'}", err=True)
    uvicorn.run(app, host=host, port=port, log_level="info", access_log=False, timeout_graceful_shutdown=30)
