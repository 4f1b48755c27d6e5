"""Words for refusals: what was given, what was possible.

In: a place and what did not fit. Out: exceptions with their text. Idea: the text is made only when something fails.
Not here: deciding whether something fits.
"""

from __future__ import annotations

from healfsa.errors import PromptError, TokenRejected
from healfsa.index import Index, Masks


def rejection(index: Masks, state: int, owed: bytes, token_id: int) -> TokenRejected:
    """Return the error for a token that is not allowed."""
    data = index.vocabulary.bytes_of(token_id)
    names = {number: name for name, number in index.vocabulary.specials.items()}
    what = repr(data) if data is not None else names.get(token_id, "which is no token")
    return TokenRejected(
        f"token {token_id} ({what}) is not allowed here", token_id, data, hint=possibilities(index, state, owed)
    )


def possibilities(index: Masks, state: int, owed: bytes = b"") -> str:
    """Say in one line what may come next."""
    if owed:
        return f"the prompt's bytes {owed!r} must be written first"
    if not isinstance(index, Index) or state <= 0:
        return ""
    members = index.automaton.next_bytes(state)
    ways = [byte_ranges(members)] if members else []
    if index.is_accepting(state):
        ways.append("the end of the text")
    return f"possible here: {' or '.join(ways)}" if ways else ""


def byte_ranges(members: int) -> str:
    """Show a 256-bit set of bytes as ranges, the first few."""
    inside = [b for b in range(256) if members >> b & 1]
    runs: list[list[int]] = []
    for byte in inside:
        if runs and runs[-1][1] == byte - 1:
            runs[-1][1] = byte
        else:
            runs.append([byte, byte])
    shown = [_show(a) if a == b else f"{_show(a)} to {_show(b)}" for a, b in runs[:12]]
    return ", ".join(shown) + (", ..." if len(runs) > 12 else "")


def _show(byte: int) -> str:
    return repr(chr(byte)) if 32 <= byte < 127 else f"byte 0x{byte:02x}"


def prefill_error(index: Masks, prefill: bytes, owed: bytes) -> PromptError:
    """Return the error for a prefill that the grammar does not accept, pointing at the first byte that does not fit."""
    state, offset = index.start, 0
    while (after := index.step(state, prefill[offset : offset + 1])) > 0 and offset < len(prefill):
        state, offset = after, offset + 1
    if offset == len(prefill):
        return PromptError("no sequence of tokens can finish the text behind the prefill", owed, offset)
    return PromptError(
        f"the prefill contradicts the grammar at byte {offset}: {prefill[: offset + 1]!r}",
        owed,
        offset,
        hint=possibilities(index, state),
    )
