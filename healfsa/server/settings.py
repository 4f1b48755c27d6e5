"""What an operator may set: addresses, keys, and the limits that an open world needs.

In: the command line. Out: one frozen value that every part of the server reads.
Not here: limits of a single grammar walk (healfsa.Limits).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of one server.

    Attributes
    ----------
    api_keys : tuple of str
        Accepted bearer keys; empty: no key is asked for.
    max_body_bytes, max_schema_bytes, max_nesting : int
        Bounds on a request's body, on one grammar in it, and on the nesting of its JSON.
    compile_seconds : float
        Bound on the compile of one grammar.
    max_stops, max_stop_bytes, max_choices, max_prompts, max_tools : int
        Bounds on counts in one request.
    rows, queue : int
        Sequences that run at once, and requests that may wait; more are answered with 429.
    cache_tokens : int
        Bound on the columns times rows of the shared cache.
    prefix_bytes : int
        Memory for prompts that later requests may begin with.
    grammar_bytes : int
        Memory for compiled grammars of one model, and again for their rows.
    chunk : int
        Prompt tokens read between two steps of the running rows.
    request_seconds : float
        Bound on one request, waiting included.
    default_tokens : int
        Budget of a completion that names none (a chat goes on to the end of the context, at most `max_tokens`).
    max_tokens : int
        Bound on the budget of one choice.
    heal : str or int
        Healing policy of requests that name none; "exact" is "auto" where a model does not offer it.
    tool_style : str
        Name of a tool style of the library; "auto" recognises the model's.
    unknown_fields : str
        "error": a field that is not known is a 400; "warn": it is named in the header `x-healfsa-ignored`.
    playground : bool
        Whether `/` is the playground.
    """

    api_keys: tuple[str, ...] = ()
    max_body_bytes: int = 4 << 20
    max_schema_bytes: int = 256 << 10
    max_nesting: int = 100
    compile_seconds: float = 10.0
    max_stops: int = 16
    max_stop_bytes: int = 1024
    max_choices: int = 16
    max_prompts: int = 64
    max_tools: int = 128
    rows: int = 32
    queue: int = 64
    cache_tokens: int = 131_072
    prefix_bytes: int = 256 << 20
    grammar_bytes: int = 256 << 20
    chunk: int = 256
    request_seconds: float = 300.0
    default_tokens: int = 16
    max_tokens: int = 8192
    heal: str | int = "exact"
    tool_style: str = "auto"
    unknown_fields: str = "error"
    playground: bool = True
