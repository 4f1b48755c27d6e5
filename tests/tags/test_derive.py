"""The derivative as an expression: against the oracle, on the automaton's random expressions and on members."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import matches

from healfsa.grammar import expression as ex
from healfsa.grammar.tags.derive import after

LEAVES = st.sampled_from(
    [ex.NOTHING, ex.EMPTY, ex.byte_set(b"ab"), ex.literal(b"a"), ex.literal(b"ab"), ex.literals([b"", b"b", b"ba"])]
)


def grown(inner):
    many = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(
        many.map(lambda parts: ex.concat(*parts)),
        many.map(lambda parts: ex.choice(*parts)),
        many.map(lambda parts: ex.both(*parts)),
        inner.map(ex.complement),
        st.builds(
            lambda part, least, more: ex.repeat(part, least, None if more < 0 else least + more),
            inner,
            st.integers(0, 2),
            st.integers(-1, 2),
        ),
        inner.map(lambda part: ex.Ref(ex.Rule("r", part))),
        st.builds(members, many, st.booleans(), st.booleans(), st.integers(0, 2)),
    )


def members(parts, extra, ordered, least):
    keys = [ex.concat(ex.literal(bytes([97 + i])), part) for i, part in enumerate(parts)]
    return ex.Members(
        tuple(keys), frozenset({0}), ex.literal(b","), ex.literal(b"b") if extra else None, least, 3, ordered
    )


@settings(max_examples=200, deadline=None)
@given(st.recursive(LEAVES, grown, max_leaves=6), st.text("ab,", max_size=5), st.integers(0, 4))
def test_what_follows_a_beginning(expression, text, cut):
    data = text.encode()
    assert matches(after(expression, [data[:cut]]), data[cut:]) == matches(expression, data)


def test_special_tokens():
    expression = ex.concat(ex.repeat(ex.byte_set(b"a")), ex.Special("<x>"), ex.literal(b"b"))
    assert matches(after(expression, [b"aa", "<x>"]), b"b")
    assert isinstance(after(expression, [b"b"]), ex.Nothing) and isinstance(after(expression, ["<y>"]), ex.Nothing)


def test_recursion():
    rule = ex.Rule("nested")
    rule.body = ex.choice(ex.literal(b"x"), ex.concat(ex.literal(b"("), ex.Ref(rule), ex.literal(b")")))
    assert matches(after(ex.Ref(rule), [b"(("]), b"x))") and not matches(after(ex.Ref(rule), [b"(("]), b"x)")
