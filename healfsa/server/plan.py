"""From what all routes have in common to jobs.

In: a request's fields: budget, sampling, stops, healing. Out: `Plan`, and from it jobs.
Idea: everything that can be wrong is found before anything is queued: grammars are compiled and prompts are cut here.
Cost: a compile at most; in a thread of its own, not in the event loop's.
Not here: prompts of the routes (prompts, chatprompt), running (exchange).
"""

from __future__ import annotations

import time
from collections.abc import Sequence as Items
from dataclasses import dataclass, replace
from typing import Any

import healfsa
from healfsa.errors import HealFSAError
from healfsa.server.catalogue import Served
from healfsa.server.constraints import Constraint
from healfsa.server.errors import ApiError, translated
from healfsa.server.fields import Fields, texts
from healfsa.server.job import Ends, Job, Sequence, Sink
from healfsa.server.metrics import Metrics
from healfsa.server.sampling import Sampler, Sampling
from healfsa.server.settings import Settings
from healfsa.server.tail import Stops, Tail, unfinished

MOST_LOGPROBS = 20
POLICIES = ("auto", "exact", "off", "one")


@dataclass(frozen=True, slots=True)
class Plan:
    """What one request wants of each of its prompts."""

    sampling: Sampling
    ends: Ends
    stops: Stops
    choices: int
    heal: str | int
    deadline: float
    scores: int | None = None
    reuse: bool = True


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt: what `Engine.heal` takes, how, what of it lies inside the grammar, and what follows the answer.

    `source` is text or ids; `ending` are the first bytes of what follows, already in the client's hands; `behind` are
    ids that the model reads behind the cut prompt (markers and a suffix); `text` is the prompt to echo,
    `lead` how many ids stand in front of it.
    """

    source: str | Items[int]
    options: dict[str, Any]
    prefill: str | None = None
    ending: bytes = b""
    behind: tuple[int, ...] = ()
    text: str = ""
    lead: int = 0


def read_plan(fields: Fields, served: Served, settings: Settings, budget: int | None, logprobs: int | None) -> Plan:
    """Return the plan of a request; `budget` and `logprobs` come under another name in each route."""
    stops = texts(fields, "stop", settings.max_stops, settings.max_stop_bytes)
    included = fields.get("include_stop_str_in_output", bool, False)
    if logprobs is not None and "logprobs" not in served.offers:
        raise ApiError("log-probabilities are not available from this model", param="logprobs")
    return Plan(
        sampling=_sampling(fields, served, logprobs),
        ends=_ends(fields, served, settings, budget),
        stops=Stops(tuple(stop.encode("utf-8", "surrogatepass") for stop in stops), included),
        choices=fields.number("n", int, 1, settings.max_choices, 1),
        heal=_policy(fields, served, settings),
        deadline=fields.arrived + settings.request_seconds,
        reuse=True,
    )


def _policy(fields: Fields, served: Served, settings: Settings) -> str | int:
    value = fields.raw("heal")
    if value is None or value is True:
        value = settings.heal if settings.heal != "exact" or "exact" in served.offers else "auto"
    if value is False:
        return "off"
    if value == "exact" and "exact" not in served.offers:
        raise fields.wrong("heal", "cannot be 'exact' with this model: use 'auto'", "unsupported_field")
    if value not in POLICIES and not (isinstance(value, int) and value >= 0):
        raise fields.wrong("heal", "must be 'auto', 'exact', 'off', 'one' or a number of tokens", "unknown_policy")
    return value


def _sampling(fields: Fields, served: Served, logprobs: int | None) -> Sampling:
    return Sampling(
        temperature=fields.number("temperature", float, 0, 100, 1.0),
        top_p=fields.number("top_p", float, 1e-9, 1, 1.0),
        top_k=max(0, fields.number("top_k", int, -1, 2**31, 0)),
        min_p=fields.number("min_p", float, 0, 1, 0.0),
        seed=_seed(fields),
        presence=fields.number("presence_penalty", float, -2, 2, 0.0),
        frequency=fields.number("frequency_penalty", float, -2, 2, 0.0),
        repetition=_repetition(fields),
        bias=_bias(fields, served.vocabulary.size),
        logprobs=logprobs,
    )


def _seed(fields: Fields) -> int | None:
    seed = fields.get("seed", int)
    return None if seed == -1 else seed


def _repetition(fields: Fields) -> float:
    names = [name for name in ("repetition_penalty", "repeat_penalty") if fields.has(name)]
    return fields.number(names[0], float, 0.01, 100) if names else 1.0


def _bias(fields: Fields, size: int) -> tuple[tuple[int, float], ...]:
    given = fields.get("logit_bias", dict, {})
    found = []
    for key, value in given.items():
        if not (key.isascii() and key.isdigit() and len(key) < 10) or int(key) >= size:
            raise fields.wrong("logit_bias", f"has the key {key[:20]!r}, which is no token id of this model")
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not -100 <= value <= 100:
            raise fields.wrong("logit_bias", "must have numbers between -100 and 100")
        found.append((int(key), float(value)))
    return tuple(found)


def _ends(fields: Fields, served: Served, settings: Settings, budget: int | None) -> Ends:
    ids = fields.get("stop_token_ids", list, [])
    if not all(isinstance(i, int) and not isinstance(i, bool) and 0 <= i < served.vocabulary.size for i in ids):
        raise fields.wrong("stop_token_ids", "must be token ids of this model")
    if len(ids) > 64:
        raise fields.wrong("stop_token_ids", "has more than 64 entries", "too_many")
    return Ends(
        frozenset(served.vocabulary.eos_ids),
        min(settings.max_tokens, served.context) if budget is None else budget,
        frozenset(ids),
        fields.number("min_tokens", int, 0, settings.max_tokens, 0),
        fields.get("ignore_eos", bool, False),
    )


def compiled(served: Served, constraint: Constraint | None, metrics: Metrics) -> Any:
    """Return the index of a constraint.

    Raises
    ------
    ApiError
        The grammar is empty, too costly, or the vocabulary cannot write it; with the field's name.
    """
    if constraint is None:
        return None
    started = time.perf_counter()
    try:
        index = served.engine.compile(constraint.grammar)
        served.engine.matcher(index).fill_bitmask(served.engine.allocate_bitmask())
    except HealFSAError as failure:
        raise translated(failure, constraint.param) from None
    metrics.compile.labels(served.name).observe(1e3 * (time.perf_counter() - started))
    return index


def healed(served: Served, prompt: Prompt, plan: Plan, metrics: Metrics) -> healfsa.Boundary:
    """Return the prompt, cut back."""
    try:
        boundary = served.engine.heal(prompt.source, plan.heal, prompt.prefill, **prompt.options)
    except HealFSAError as failure:
        raise translated(failure, "prompt") from None
    metrics.prompts.labels(served.name).inc()
    if boundary.owed:
        metrics.healed.labels(served.name).inc()
    return boundary


def with_ending(constraint: Constraint | None, ending: bytes) -> Constraint | None:
    """Return the constraint of a text that must end with `ending`."""
    if not ending:
        return constraint
    before = constraint.grammar if constraint is not None else healfsa.text()
    return Constraint(before + ending.decode(), constraint.param if constraint is not None else "suffix")


def make_job(
    served: Served,
    plan: Plan,
    settings: Settings,
    prompt: Prompt,
    boundary: healfsa.Boundary,
    index: Any,
    sink: Sink,
    *,
    grammar: healfsa.Grammar | None = None,
    shown: dict[int, bytes] | None = None,
    covers: Any = None,
) -> Job:
    """Return the job of a healed prompt; `shown` are special tokens that are written into the text by name."""
    scored = () if plan.scores is None else boundary.prompt_ids
    if prompt.behind:
        keep, given = boundary.keep + prompt.behind, boundary.prompt_ids + prompt.behind
        boundary = replace(boundary, keep=keep, prompt_ids=given)
    ids = boundary.keep or (start_id(served),)
    room = max(0, served.context - len(ids) - len(boundary.owed))
    ends = Ends(plan.ends.ends, min(plan.ends.budget, room), plan.ends.stops, plan.ends.least, plan.ends.ignored)
    skip, begun = _shown_part(served.vocabulary, boundary)
    sequences = []
    for number in range(plan.choices):
        try:
            matcher = served.engine.matcher(index, prompt=boundary)
        except HealFSAError as failure:
            raise translated(failure, "prompt") from None
        tail = Tail(skip, plan.stops, begun, prompt.ending)
        sequences.append(Sequence(number, matcher, Sampler(plan.sampling, number), tail, ends, shown))
    return Job(boundary, tuple(ids), sequences, sink, plan.deadline, plan.scores, plan.reuse, grammar, covers, scored)


def _shown_part(vocabulary: healfsa.Vocabulary, boundary: healfsa.Boundary) -> tuple[int, bytes]:
    """Return how many owed bytes the client can show, and the begun character in front of them that it cannot.

    A prompt of token ids may end inside a character; the whole character then goes out with the answer.
    """
    tail = vocabulary.decode_bytes(boundary.keep[-4:]) + boundary.owed
    rest = unfinished(tail)
    if rest <= len(boundary.owed):
        return len(boundary.owed) - rest, b""
    return 0, tail[-rest:][: rest - len(boundary.owed)]


def start_id(served: Served) -> int:
    """Return the id that a text starts with, for prompts of which nothing is kept."""
    vocabulary = served.vocabulary
    for found in (vocabulary.specials.get("<|endoftext|>"), vocabulary.bos_id, *vocabulary.eos_ids):
        if found is not None:
            return int(found)
    raise ApiError("the prompt is empty, and this model has no token to start with", param="prompt")
