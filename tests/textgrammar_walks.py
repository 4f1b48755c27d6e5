"""Random walks through text grammars, and readers of their languages."""

from __future__ import annotations

import ast
import json
import random
import sqlite3
from collections import deque
from pathlib import Path

from healfsa.automaton import Automaton

ROOT = Path(__file__).parents[1]


def next_bytes(automaton: Automaton, state: int) -> list[int]:
    members = automaton.next_bytes(state)
    return [byte for byte in range(256) if members >> byte & 1]


def walk(automaton: Automaton, rng: random.Random, length: int) -> bytes:
    """Write up to `length` bytes at random, then the shortest end there is."""
    state, out = automaton.start, bytearray()
    for _ in range(length):
        choices = next_bytes(automaton, state)
        assert choices or automaton.is_accepting(state), bytes(out)
        if automaton.is_accepting(state) and (not choices or rng.random() < 0.1):
            break
        out.append(rng.choice(choices))
        state = automaton.step(state, out[-1:])
    return bytes(out) + shortest_end(automaton, state)


def shortest_end(automaton: Automaton, state: int) -> bytes:
    """Return the shortest text that may end behind `state`."""
    work, seen = deque([(state, b"")]), {state}
    while work:
        here, text = work.popleft()
        if automaton.is_accepting(here):
            return text
        for byte in next_bytes(automaton, here):
            target = automaton.step(here, bytes([byte]))
            if target not in seen:
                seen.add(target)
                work.append((target, text + bytes([byte])))
    raise AssertionError(f"a dead end at state {state}")


def is_sql(text: str) -> bool:
    """Say whether SQLite finds no fault with the syntax."""
    try:
        sqlite3.connect(":memory:").execute(text)
    except sqlite3.OperationalError as error:
        return "syntax error" not in str(error) and "incomplete" not in str(error)
    return True


def is_python(text: str) -> bool:
    try:
        ast.parse(text, mode="eval")
    except SyntaxError:
        return False
    return True


READERS = {
    "json.gbnf": lambda text: json.loads(text) is not NotImplemented,
    "arithmetic.gbnf": lambda text: True,
    "sql.lark": is_sql,
    "python_expression.lark": is_python,
}
