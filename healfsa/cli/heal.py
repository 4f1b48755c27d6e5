"""`healfsa heal`: what healing does to one prompt.

In: a prompt, a policy, maybe a grammar. Out: its pieces, kept and owed, and which tokens may follow.
Not here: the decision (see healfsa.healing).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from rich.console import Console
from rich.text import Text

import healfsa
from healfsa.cli.inputs import engine_of, grammar_of, read_prompt
from healfsa.cli.inputs import policy as read_policy


def run(
    prompt: str,
    policy: str,
    grammar: tuple[Any, ...],
    prefill: str | None,
    tokenizer: str | None,
    parse_special: bool,
    show: int,
) -> None:
    """Heal and print."""
    built = grammar_of(*grammar)
    engine = engine_of(tokenizer)
    vocabulary = engine.vocabulary
    text = read_prompt(prompt)
    ids = vocabulary.encode(text, add_special_tokens=True, parse_special=parse_special)
    healed = engine.heal(ids, read_policy(policy), prefill=prefill)
    matcher = engine.matcher(built, prompt=healed)  # may find a contradiction: nothing is printed before
    allowed = allowed_ids(matcher, vocabulary.size)
    console = Console(soft_wrap=True, highlight=False)
    kept, removed = healed.prompt_ids[: len(healed.keep)], healed.removed_ids
    console.print(Text("kept     ", style="bold green") + _pieces(vocabulary, kept))
    console.print(Text("removed  ", style="bold yellow") + _pieces(vocabulary, removed))
    console.print(Text("owed     ", style="bold yellow") + Text(quoted(healed.owed)))
    console.print(Text(f"next     {len(allowed):,} of {vocabulary.size:,} tokens may follow"))
    if show:
        console.print(Text("         ") + _sample(vocabulary, allowed, show))


def allowed_ids(matcher: Any, size: int) -> np.ndarray:
    """Return the ids that `matcher` allows now."""
    bitmask = healfsa.allocate_bitmask(1, size)
    matcher.fill_bitmask(bitmask, 0)
    return np.flatnonzero(np.unpackbits(bitmask.view(np.uint8)[0], bitorder="little")[:size])


def quoted(data: bytes) -> str:
    """Return bytes as a readable literal: text where they are text, escapes where not."""
    try:
        return repr(data.decode())
    except UnicodeDecodeError:
        return repr(data)


def piece(vocabulary: Any, token_id: int) -> str:
    """Return one token as a readable literal; specials by their name."""
    data = vocabulary.bytes_of(token_id)
    if data is not None:
        return quoted(data)
    return next((name for name, found in vocabulary.specials.items() if found == token_id), f"<{token_id}>")


def _pieces(vocabulary: Any, ids: tuple[int, ...]) -> Text:
    return Text(" ".join(piece(vocabulary, token_id) for token_id in ids) or "(nothing)")


def _sample(vocabulary: Any, allowed: np.ndarray, show: int) -> Text:
    """Show the shortest ones: those that only spell the owed bytes come first."""
    ranked = sorted(allowed.tolist(), key=lambda i: len(vocabulary.bytes_of(i) or b"\xff" * 99))[:show]
    more = " …" if len(allowed) > show else ""
    return Text(" ".join(piece(vocabulary, token_id) for token_id in ranked) + more, style="dim")
