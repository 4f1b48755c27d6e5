"""Tokens that run through more than one item: where a state without memory may allow what comes twice.

In: a state that counts items (automaton/kernels_distinct), tokens. Out: those that must be read with the memory.
Idea: a token that ends one item allows what the state without memory says: that item was looked at already. Only one
    that begins another item behind it may write the first one again; and where so much of the other item is still to
    come that it can be endlessly many things, it has not.
Cost: some nanoseconds a byte, once for a state without memory.
Not here: reading them (index/distinct).
"""

from __future__ import annotations

from healfsa.automaton.kernels import transition
from healfsa.automaton.kernels_forget import ended_items
from healfsa.index.kernels import BYTES, READ, kernel

MANY = 10_000  # things that an item may still be; see docs/json-schema.md
SECOND = 2  # of `ended_items`: inside the second item


@kernel("int64(int32[::1], int64)")
def is_open(memory, state):
    """Return 1 when endlessly many (or MANY) runs of letters may follow, else 0."""
    ways, here = 1, state
    while ways < MANY:
        live, ahead = 0, 0
        for letter in range(97, 123):
            after = transition(memory, here, letter)
            if after < 0:
                return after
            if after > 0:
                live += 1
                ahead = after if live == 1 else ahead
        if live < 2:
            return 0
        if ahead == here:
            return 1
        ways, here = ways * live, ahead
    return 1


@kernel(f"int64(int32[::1], {BYTES}, {READ}, int64, int64, {READ}, int32[::1])")
def doubtful(memory, data, offsets, state, passed, tokens, found):
    """Write those of `tokens` (without their first `passed` bytes) that must be read with the memory; how many."""
    n = 0
    for k in range(tokens.size):
        here, begun = state, 0
        for at in range(offsets[tokens[k]] + passed, offsets[tokens[k] + 1]):
            here = transition(memory, here, data[at])
            if here <= 0:
                break
            begun = max(begun, ended_items(memory, here))
        if here < 0:
            return here
        if here == 0 or begun < SECOND:
            continue
        free = is_open(memory, here) if begun == SECOND and ended_items(memory, here) == SECOND else 0
        if free < 0:
            return free
        if free == 0:
            found[n] = tokens[k]
            n += 1
    return n
