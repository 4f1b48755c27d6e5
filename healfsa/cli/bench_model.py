"""`healfsa bench --end-to-end`: a model with and without a schema, and the forward passes that forced text saves.

In: a transformers model. Out: tokens a second of CPU time side by side, and passes against tokens for ten schemas.
Idea: both ways write the same number of tokens (the schema's text cannot end earlier), one behind the other, so that
    only the masks differ; the ratio is the median of the turns' ratios, since a machine's pace drifts by more than a
    mask costs. Passes are counted along texts: what is forced needs none.
Cost: about 20 seconds with the embedded model.
Not here: masks alone (bench).
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

import healfsa

PROMPT = "Some books, as JSON: "
BOOK = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "minLength": 8},
        "year": {"type": "integer"},
        "lent": {"type": "boolean"},
    },
    "required": ["title", "year", "lent"],
    "additionalProperties": False,
}
LONG = {"type": "array", "items": BOOK, "minItems": 1000}


def run(model: str | None, tokens: int, repeat: int, out: Path | None) -> None:
    """Measure, print, and write the figures to `out`."""
    from healfsa.integrations import transformers

    network, tokenizer = healfsa.models.load(model)
    engine = transformers.Generator(network, tokenizer).engine
    index = engine.compile(healfsa.json_schema(LONG))
    inputs = tokenizer(PROMPT, return_tensors="pt")
    start = inputs["input_ids"].shape[1]
    seconds: dict[str, list[float]] = {"without": [], "with": []}
    in_masks = []
    for turn in range(repeat + 1):
        for way in list(seconds)[:: 1 if turn % 2 else -1]:  # neither is always first
            processor = transformers.ConstrainedLogitsProcessor(engine, index, prompt_width=start)
            masks = [_Timed(processor)] if way == "with" else []
            spent = _generate(network, inputs, tokens, masks)
            if turn:  # the first one warms up
                seconds[way].append(spent)
                in_masks += [mask.spent / spent for mask in masks]
    speeds = {way: tokens / float(np.median(taken)) for way, taken in seconds.items()}
    passes = [forced(engine, style) for style in ("single", "compact")]
    ratios = np.array(seconds["without"]) / np.array(seconds["with"])
    ratio, share = float(np.median(ratios)), float(np.median(in_masks))
    console = Console()
    console.print(f"tokens a second of CPU time, {tokens} tokens, median of {repeat}: {speeds['without']:.1f} without,")
    console.print(f"{speeds['with']:.1f} with a schema; ratio {ratio:.3f} ({ratios.min():.3f} to {ratios.max():.3f})")
    console.print(f"of a token's time with a schema {100 * share:.2f}% is spent in the masks")
    for style, (asked, written) in zip(("single", "compact"), passes, strict=True):
        console.print(f"{len(CASES)} schemas, style {style}: {asked} forward passes write {written} tokens")
    if out:
        out.write_text(
            json.dumps({"tokens_per_second": speeds, "ratio": ratio, "masks": share, "passes": passes}, indent=1),
            "utf-8",
        )


class _Timed:
    """A logits processor whose own CPU seconds are added up in `spent`."""

    def __init__(self, processor: Any) -> None:
        self.processor, self.spent = processor, 0.0

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        start = time.process_time()
        masked = self.processor(input_ids, scores)
        self.spent += time.process_time() - start
        return masked


def _generate(network: Any, inputs: Any, tokens: int, masks: list[Any]) -> float:
    """Return the CPU seconds that so many tokens take."""
    start = time.process_time()
    written = network.generate(
        **inputs, max_new_tokens=tokens, min_new_tokens=tokens, do_sample=False, logits_processor=masks
    )
    spent = time.process_time() - start
    got = written.shape[1] - inputs["input_ids"].shape[1]
    return spent * tokens / got


def _flat(**kinds: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {name: {"type": kind} for name, kind in kinds.items()},
        "required": list(kinds),
        "additionalProperties": False,
    }


CASES: list[tuple[dict[str, Any], Any]] = [
    (_flat(name="string", age="integer"), {"name": "Ada", "age": 36}),
    (_flat(location="string", metric="boolean"), {"location": "Oslo", "metric": True}),
    (_flat(title="string", description="string"), {"title": "A day", "description": "Nothing happened."}),
    (_flat(latitude="number", longitude="number"), {"latitude": 59.9, "longitude": 10.7}),
    (_flat(question="string", answer="string", sure="boolean"), {"question": "Why?", "answer": "So.", "sure": False}),
    (_flat(first_name="string", last_name="string"), {"first_name": "Grace", "last_name": "Hopper"}),
    (_flat(quantity="integer", unit_price="number"), {"quantity": 3, "unit_price": 9.75}),
    (BOOK, {"title": "The Castle", "year": 1926, "lent": False}),
    (_flat(subject="string", recipient="string"), {"subject": "Hi", "recipient": "ada@example.org"}),
    (_flat(start_date="string", end_date="string"), {"start_date": "2026-11-30", "end_date": "2026-12-01"}),
]


def forced(engine: healfsa.Engine, style: str) -> tuple[int, int]:
    """Return how many forward passes and how many tokens the texts of the schemas take."""
    separators = (",", ":") if style == "compact" else (", ", ": ")
    passes = written = 0
    for schema, value in CASES:
        looks = healfsa.Style(white_space=style, key_order="schema")  # what is forced is what an order forces
        matcher = engine.matcher(healfsa.json_schema(schema, style=looks))
        left = engine.vocabulary.encode(json.dumps(value, separators=separators))
        while left:
            known = matcher.forced_tokens()
            if known == left[: len(known)] and known:
                taken = len(known)
            else:
                taken, passes = 1, passes + 1
            matcher.accept_tokens(left[:taken])
            left, written = left[taken:], written + taken
    return passes, written
