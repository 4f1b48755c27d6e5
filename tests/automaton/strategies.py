"""Random expressions over a small alphabet, and texts near their languages.

Idea: every node kind, small bounds, shared parts and recursive rules, so that rare interactions are met.
"""

from __future__ import annotations

from hypothesis import strategies as st

from healfsa.grammar import expression as ex

ALPHABET = b"ab,"


def texts(max_size: int = 7):
    """Short byte strings over the alphabet (and now and then a byte outside it)."""
    return st.lists(st.sampled_from(b"aaabbb,,,z"), max_size=max_size).map(bytes)


def atoms():
    """Nodes without parts."""
    return st.one_of(
        st.just(ex.EMPTY),
        st.just(ex.NOTHING),
        st.just(ex.ANY_BYTES),
        st.sets(st.sampled_from(ALPHABET), min_size=1).map(ex.byte_set),
        st.lists(st.sampled_from(ALPHABET), min_size=1, max_size=12).map(lambda s: ex.literal(bytes(s))),
        st.lists(texts(4), min_size=1, max_size=5).map(ex.literals),
    )


def consuming(part):
    """The same expression without the empty text."""
    return ex.both(part, ex.Repeat(ex.ANY_BYTE, 1, None))


@st.composite
def members(draw, parts):
    """A Members node over members that are never empty."""
    listed = tuple(
        consuming(p) if draw(st.booleans()) else ex.concat(ex.byte_set(b"ab"), p)
        for p in draw(st.lists(parts, max_size=4))
    )
    required = frozenset(draw(st.sets(st.integers(0, len(listed) - 1)))) if listed else frozenset()
    extra = draw(st.none() | parts.map(consuming))
    least = draw(st.integers(0, 3))
    most = draw(st.none() | st.integers(least, 4))
    separator = draw(st.just(ex.literal(b",")) | parts)
    return ex.Members(listed, required, separator, extra, least, most, draw(st.booleans()))


@st.composite
def repeats(draw, parts):
    """A counter."""
    least = draw(st.integers(0, 4))
    most = draw(st.none() | st.integers(least, 6))
    return ex.Repeat(draw(parts), least, most)


@st.composite
def recursive(draw, parts):
    """A rule that refers to itself behind at least one byte."""
    rule = ex.Rule("r")
    before, after, base = draw(parts), draw(parts), draw(parts)
    inner = ex.concat(ex.byte_set(b"ab"), before, ex.Ref(rule), after)
    if draw(st.booleans()):
        inner = ex.concat(ex.literal(b"a"), ex.Not(ex.Ref(rule)))
    rule.body = ex.choice(base, inner)
    return ex.Ref(rule)


def expressions(max_leaves: int = 8):
    """Expressions of all kinds."""
    return st.recursive(
        atoms(),
        lambda parts: st.one_of(
            st.lists(parts, min_size=2, max_size=3).map(lambda p: ex.Concat(tuple(p))),
            st.lists(parts, min_size=2, max_size=3).map(lambda p: ex.Choice(tuple(p))),
            st.lists(parts, min_size=2, max_size=3).map(lambda p: ex.Both(tuple(p))),
            parts.map(ex.Not),
            repeats(parts),
            members(parts),
            recursive(parts),
        ),
        max_leaves=max_leaves,
    )
