"""`healfsa bench-healing`: does the model find the rest of the token that a prompt cuts in two?

In: a model and examples. Out: a table (Markdown), a plot (SVG), and every answer (JSON Lines).
Idea: four ways to go on, all greedy: *unhealed* (the prompt's own tokens), *one* (the last token taken back), *auto*
    (all that may merge taken back, local masks), *exact* (byte by byte, over all covers). An answer is right when it
    begins with the rest of the cut token.
Cost: about two seconds of one core an example on the embedded model.
Source: Xu et al. (arXiv:2601.23223); Wilson's interval for a share.
Not here: where examples come from (see bench_cuts).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track

import healfsa
from healfsa.cli.bench_cuts import Example, make_examples, read_examples
from healfsa.healing import ByteReader, heal, logprob
from healfsa.integrations.transformers import engine_for
from healfsa.integrations.transformers.reading import PathReader

METHODS = ("unhealed", "one", "auto", "exact")
POLICIES = {"unhealed": "off", "one": "one", "auto": "auto"}
Z = 1.959964  # the normal distribution: 95 % lie within


@dataclass(frozen=True, slots=True)
class Contestant:
    """A model that answers by any of the methods.

    Attributes
    ----------
    engine : healfsa.Engine
    reader : PathReader
        The model behind its beginning-of-text token.
    """

    engine: healfsa.Engine
    reader: PathReader

    def answer(self, method: str, prompt: str, count: int) -> bytes:
        """Return at least `count` bytes behind the prompt (fewer where the text ends)."""
        return self.continuation(prompt, count) if method == "exact" else self._by_tokens(method, prompt, count)

    def continuation(self, prompt: str, count: int) -> bytes:
        """Return the likeliest next byte, `count` times, under the exact distribution."""
        healed = heal(self.engine.vocabulary, prompt, "exact")
        reader = ByteReader(self.engine.vocabulary, self._reader(healed.keep), healed)
        for _ in range(count):
            label = int(np.argmax(reader.next_byte_logprobs()))
            if label > 255:
                break
            reader.push(label)
        return reader.written

    def logprob(self, prompt: str, answer: bytes) -> float:
        """Return the natural logarithm of the exact probability that `answer` follows."""
        healed = heal(self.engine.vocabulary, prompt, "exact")
        return logprob(self.engine.vocabulary, self._reader(healed.keep), healed, answer)

    def unhealed_logprob(self, prompt: str, answer: bytes) -> float:
        """Return the same behind the prompt's own tokens, over all segmentations but the rarest."""
        known = self.engine.vocabulary
        bare = heal(known, prompt, "off")
        return logprob(known, self._reader(bare.keep), bare, answer, over="all", share=1e-3)

    def _reader(self, keep: Sequence[int]) -> Callable[[Sequence[Sequence[int]]], np.ndarray]:
        # All methods of one example share the keys and values of what they keep.
        return lambda paths: self.reader([(*keep, *path) for path in paths])

    def _by_tokens(self, method: str, prompt: str, count: int) -> bytes:
        known = self.engine.vocabulary
        healed = self.engine.heal(prompt, POLICIES[method])
        matcher, reader = self.engine.matcher(None, prompt=healed), self._reader(healed.keep)
        bitmask = healfsa.allocate_bitmask(1, known.size)
        path: list[int] = []
        written = b""
        while len(written) < len(healed.owed) + count:
            matcher.fill_bitmask(bitmask, 0)
            row = reader([path])
            healfsa.apply_bitmask(row, bitmask)
            token = int(np.argmax(row[0]))
            if known.bytes_of(token) is None:
                break
            matcher.accept_token(token)
            path.append(token)
            written += known.bytes_of(token)
        return written[len(healed.owed) :]


@dataclass(slots=True)
class Tally:
    """The results of one domain."""

    right: dict[str, int] = field(default_factory=lambda: dict.fromkeys(METHODS, 0))
    logs: dict[str, list[float]] = field(default_factory=lambda: {"unhealed": [], "exact": []})
    count: int = 0


def contestant(model: str | None = None, begin: int | None = None) -> Contestant:
    """Return the model of a name or folder (none: the embedded one), ready to answer.

    Without a beginning-of-text token of its own choice it takes the one between documents: the end-of-text token.
    """
    loaded, tokenizer = healfsa.models.load(model) if model else healfsa.models.load()
    engine = engine_for(loaded, tokenizer)
    named = engine.vocabulary.specials.get("<|endoftext|>")
    first = next(i for i in (begin, named, tokenizer.bos_token_id, tokenizer.eos_token_id) if i is not None)
    return Contestant(engine, PathReader(loaded, [first]))


def run(model: str | None, data: Path | None, count: int, repeat: bool, begin: int | None, out: Path) -> None:
    """Answer all examples; write the answers, the table and the plot into `out`."""
    console = Console(highlight=False)
    asked = contestant(model, begin)
    known = asked.engine.vocabulary
    examples = read_examples(data, count, repeat=repeat) if data else make_examples(known, count, repeat=repeat)
    out.mkdir(parents=True, exist_ok=True)
    name = "healing-repeat" if repeat else "healing"
    tallies: dict[str, Tally] = {}
    with (out / f"{name}.jsonl").open("w") as answers:
        for example in track(examples, "answers", console=console):
            entry = judge(asked, example, tallies.setdefault(example.domain, Tally()))
            answers.write(json.dumps(entry, ensure_ascii=False) + "\n")
    lines = table(tallies)
    (out / f"{name}.md").write_text(lines + "\n")
    plot(tallies, out / f"{name}.svg")
    console.print(lines, markup=False)


def judge(asked: Contestant, example: Example, tally: Tally) -> dict[str, Any]:
    """Answer one example by every method, and count."""
    entry: dict[str, Any] = {"domain": example.domain, "prompt": example.prompt[-60:], "right": example.answer.decode()}
    tally.count += 1
    for method in METHODS:
        found = asked.answer(method, example.prompt, len(example.answer))
        tally.right[method] += found.startswith(example.answer)
        entry[method] = found.decode(errors="backslashreplace")
    for method, measure in (("unhealed", asked.unhealed_logprob), ("exact", asked.logprob)):
        entry[f"log10 {method}"] = measure(example.prompt, example.answer) / math.log(10)
        tally.logs[method].append(entry[f"log10 {method}"])
    return entry


def wilson(right: int, count: int) -> tuple[float, float, float]:
    """Return a share and Wilson's 95 % interval around it, in per cent."""
    if not count:
        return 0.0, 0.0, 0.0
    share, spread = right / count, Z * Z / count
    middle = (share + spread / 2) / (1 + spread)
    half = Z * math.sqrt(share * (1 - share) / count + spread / (4 * count)) / (1 + spread)
    return 100 * share, 100 * max(0.0, middle - half), 100 * min(1.0, middle + half)


def table(tallies: dict[str, Tally]) -> str:
    """Return the results as a Markdown table."""
    head = ["domain", "n", *(f"{method}, % right" for method in METHODS), "log10 P unhealed", "log10 P exact"]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for domain, tally in tallies.items():
        shares = ["{:.1f} [{:.0f}–{:.0f}]".format(*wilson(tally.right[method], tally.count)) for method in METHODS]
        logs = [f"{np.mean(tally.logs[method]):.2f}" for method in ("unhealed", "exact")]
        lines.append("| " + " | ".join([domain, str(tally.count), *shares, *logs]) + " |")
    return "\n".join(lines)


def plot(tallies: dict[str, Tally], path: Path) -> None:
    """Draw the shares with their intervals."""
    drawing: Callable[..., Any] = _figure()
    figure, axes = drawing(figsize=(1.5 + 1.7 * len(tallies), 3.6), layout="constrained")
    places = np.arange(len(tallies))
    for number, method in enumerate(METHODS):
        found = np.array([wilson(tally.right[method], tally.count) for tally in tallies.values()])
        reach = np.abs(found[:, 1:] - found[:, :1]).T
        axes.bar(places + (number - 1.5) * 0.2, found[:, 0], 0.19, yerr=reach, capsize=2, label=method)
    axes.set_xticks(places, list(tallies))
    axes.set_ylabel("right continuation, %")
    axes.set_ylim(0, 105)
    axes.legend(ncols=len(METHODS), fontsize=8, frameon=False, loc="upper center", bbox_to_anchor=(0.5, 1.12))
    figure.savefig(path, metadata={"Date": None})


def _figure() -> Callable[..., Any]:
    try:
        import matplotlib
    except ImportError as missing:
        raise healfsa.MissingExtra("bench", "matplotlib") from missing
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "healfsa"  # the same results give the same file
    from matplotlib import pyplot

    found: Callable[..., Any] = pyplot.subplots
    return found
