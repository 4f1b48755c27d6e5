"""Grammars that live where the logits are: masks and next states without asking the host.

Run: `python examples/11_device_index.py` (on the GPU where there is one, else on the CPU), or
`python examples/11_device_index.py path/to/tokenizer.json` to see what ten schemas take over another vocabulary.
"""

from __future__ import annotations

import sys

import torch

import healfsa
from healfsa.engine.device import DeviceIndex, tables_of
from healfsa.mask import describe
from healfsa.mask.layout import lay_out

TEXT, COUNT, YES = {"type": "string"}, {"type": "integer"}, {"type": "boolean"}


def record(**properties):
    """An object with exactly these properties."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def several(items, most=10):
    return {"type": "array", "items": items, "maxItems": most}


LINE = record(sku=TEXT, quantity=COUNT, price={"type": "number"})
SCHEMAS = {
    "verdict": record(answer={"enum": ["yes", "no", "unsure"]}, confidence={"type": "number"}),
    "person": record(name=TEXT, age=COUNT, mail={"type": "string", "pattern": "^[a-z0-9._-]+@[a-z0-9.-]+$"}),
    "character": record(name={"type": "string", "maxLength": 10}, age=COUNT, armor={"enum": ["leather", "plate"]}),
    "date and time": record(start={"type": "string", "format": "date-time"}, minutes=COUNT),
    "labels": several({"enum": ["positive", "negative", "neutral", "mixed"]}),
    "address": record(street=TEXT, city=TEXT, zip={"type": "string", "pattern": "^[0-9]{5}(-[0-9]{4})?$"}),
    "invoice": record(number={"type": "string", "pattern": "^INV-[0-9]{6}$"}, lines=several(LINE, 20)),
    "tool call": {"anyOf": [record(name={"const": "search"}, arguments=record(query=TEXT, limit=COUNT)),
                            record(name={"const": "weather"}, arguments=record(city=TEXT, days=COUNT))]},
    "extraction": record(title=TEXT, authors=several(TEXT), year=COUNT, open={"type": ["boolean", "null"]}),
    "settings, any order": {"type": "object", "properties": {"on": YES, "level": COUNT, "mode": TEXT},
                            "additionalProperties": False},
}  # fmt: skip


def generate(engine: healfsa.Engine, device: str) -> None:
    """Four requests over three grammars, two of them healed; every step is three launches and no wait."""
    index = DeviceIndex(engine, device)
    date = healfsa.regex(r"\d{4}-\d{2}-\d{2}")
    requests = [
        (date, None),
        (date, engine.heal("Released on 202", 1, prefill="202")),
        (healfsa.json_schema(SCHEMAS["verdict"], style="ordered"), None),
        (None, engine.heal("The company hired an intermed")),
    ]
    begun = [index.start(grammar, prompt) for grammar, prompt in requests]
    states = index.states(begun)
    generator, written = torch.Generator(device).manual_seed(5), []
    for _ in range(20):
        logits = torch.randn((len(requests), engine.vocabulary.size), generator=generator, device=device)  # the model
        logits[:, list(engine.vocabulary.eos_ids)] += 1
        index.mask(logits, states)
        tokens = logits.argmax(-1)
        index.advance(states, tokens)
        written.append(tokens)
    for begin in begun:
        index.release(begin)
    for row in torch.stack(written, 1).tolist():
        print(repr(engine.vocabulary.decode_bytes(row).decode("utf-8", "replace"))[:100])


def sizes(engine: healfsa.Engine) -> None:
    """What the schemas take on a device, and what one next state for every state and token would take."""
    print(f"\nover {engine.vocabulary.size:,} tokens")
    print("| schema | states | token classes | on the device | dense table |")
    for name, schema in SCHEMAS.items():
        try:
            style = "default" if "any order" in name else "ordered"  # each key in any order doubles the states
            tables, _ = tables_of(engine.compile(healfsa.json_schema(schema, style=style), eager=True))
        except healfsa.LimitExceeded as error:  # then its rows come from a matcher, see docs/gpu.md
            print(f"| {name} | {error.message}")
            continue
        words, records = lay_out(tables, 0, 0)
        states, classes = tables.transitions.shape
        dense = 4 * states * engine.vocabulary.size
        there = (words.nbytes + records.nbytes) / 1e6
        print(f"| {name} | {states:,} | {classes} | {there:.2f} MB | {dense / 1e6:,.0f} MB |")


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    print(describe(device), "\n")
    tokenizer = sys.argv[1] if len(sys.argv) > 1 else healfsa.models.embedded_folder() / "tokenizer.json"
    engine = healfsa.Engine(healfsa.Vocabulary.from_tokenizer(tokenizer))
    generate(engine, device)
    sizes(engine)


if __name__ == "__main__":
    main()
