"""Random expressions by seed: bigger and more even over the node kinds than the Hypothesis strategy."""

from __future__ import annotations

import random

from healfsa.grammar import expression as ex

LETTERS = b"ab,"


def random_bytes(rng: random.Random, most: int) -> bytes:
    """Return some bytes over the alphabet."""
    return bytes(rng.choice(LETTERS) for _ in range(rng.randint(0, most)))


def random_expression(rng: random.Random, size: int, rules: tuple[ex.Rule, ...] = ()) -> ex.Expression:
    """Return an expression of about `size` nodes."""
    if size <= 1:
        return random_atom(rng, rules)
    kind = rng.choice(("concat",) * 4 + ("choice",) * 3 + ("both", "not", "members", "rule") + ("repeat",) * 3)
    if kind in ("concat", "choice", "both"):
        n = rng.randint(2, 3)
        parts = tuple(random_expression(rng, max(1, size // n), rules) for _ in range(n))
        return {"concat": ex.Concat, "choice": ex.Choice, "both": ex.Both}[kind](parts)
    if kind == "not":
        return ex.Not(random_expression(rng, size - 1, rules))
    if kind == "repeat":
        least = rng.choice((0, 0, 1, 2, 3))
        most = rng.choice((None, least, least + 1, least + 3))
        return ex.Repeat(random_expression(rng, size - 1, rules), least, most)
    return random_members(rng, size, rules) if kind == "members" else random_rule(rng, size, rules)


def random_atom(rng: random.Random, rules: tuple[ex.Rule, ...]) -> ex.Expression:
    """Return a node without parts; a reference to a rule stands behind a byte."""
    kind = rng.randint(0, 7)
    if kind == 0 and rules:
        return ex.concat(ex.byte_set(b"ab"), ex.Ref(rng.choice(rules)))
    if kind <= 2:
        return ex.byte_set(rng.sample(LETTERS, rng.randint(1, 3)))
    if kind <= 4:
        return ex.literal(random_bytes(rng, 10))
    if kind == 5:
        return ex.literals([random_bytes(rng, 3) for _ in range(rng.randint(1, 5))])
    return ex.ANY_BYTES if kind == 6 else ex.optional(ex.literal(random_bytes(rng, 2)))


def random_members(rng: random.Random, size: int, rules: tuple[ex.Rule, ...]) -> ex.Members:
    """Return members that are never empty, mostly behind a byte of their own."""
    n = rng.randint(0, 4)
    share = max(1, size // (n + 2))

    def member() -> ex.Expression:
        part = random_expression(rng, share, rules)
        if rng.random() < 0.3:
            return ex.Both((part, ex.Repeat(ex.ANY_BYTE, 1, None)))
        return ex.concat(ex.byte_set(rng.sample(b"ab", rng.randint(1, 2))), part)

    listed = tuple(member() for _ in range(n))
    required = frozenset(i for i in range(n) if rng.random() < 0.4)
    least = rng.choice((0, 0, 1, 2))
    most = rng.choice((None, None, least + 1, least + 2))
    separator = ex.literal(b",") if rng.random() < 0.7 else random_expression(rng, share, rules)
    extra = member() if rng.random() < 0.4 else None
    return ex.Members(listed, required, separator, extra, least, most, rng.random() < 0.5)


def random_rule(rng: random.Random, size: int, rules: tuple[ex.Rule, ...]) -> ex.Expression:
    """Return a reference to a new rule, which may refer to itself and to outer rules behind a byte."""
    rule = ex.Rule(f"r{len(rules)}")
    body = random_expression(rng, size - 1, (*rules, rule))
    if rng.random() < 0.3:
        rule.build, rule.nullable = (lambda: body), None
    else:
        rule.body = body
    return ex.Ref(rule)


def near(rng: random.Random, data: bytes) -> bytes:
    """Return a text that differs a little from `data`."""
    changed = bytearray(data)
    for _ in range(rng.randint(1, 2)):
        i = rng.randint(0, len(changed))
        changed[i : i + rng.randint(0, 1)] = random_bytes(rng, 1)
    return bytes(changed)
