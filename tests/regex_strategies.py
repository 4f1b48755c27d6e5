"""Random patterns of Python's `re`, and random texts over the letters that they use."""

from __future__ import annotations

from hypothesis import strategies as st

LETTERS = "abAé1_ \n-"

single = st.sampled_from(
    ["a", "b", "A", "é", "1", "_", " ", r"\n", "-", ".", r"\w", r"\W", r"\d", r"\s", r"\S", "[ab]", "[^a]", "[a-c1]"]
    + [r"[^\w]", r"[\s-]", r"[^\n]", "[^ab]", r"[\d_]"]
)
assertion = st.sampled_from(["^", "$", r"\A", r"\Z", r"\b", r"\B"])
quantifier = st.sampled_from(
    ["*", "+", "?", "{2}", "{1,2}", "{,2}", "{2,}", "*?", "+?", "??", "{1,2}?", "*+", "++", "?+", "{1,2}+"]
)
opening = st.sampled_from(["(?:", "(", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:", "(?s:", "(?m:", "(?-i:"])


def _grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.lists(inner, min_size=1, max_size=4).map("".join),
        st.lists(inner, min_size=2, max_size=3).map("|".join).map("(?:{})".format),
        st.tuples(inner, quantifier).map(lambda pair: f"(?:{pair[0]}){pair[1]}"),
        st.tuples(single, quantifier).map("".join),
        st.tuples(opening, inner).map(lambda pair: f"{pair[0]}{pair[1]})"),
        st.tuples(inner, inner, inner).map(lambda three: f"(?:(?P<g>{three[0]})|{three[1]})(?(g){three[2]}|b)"),
    )


patterns = st.recursive(st.one_of(single, assertion), _grown, max_leaves=8)
flags = st.sampled_from(["", "", "", "i", "m", "s", "a", "ims"])
texts = st.text(st.sampled_from(LETTERS), max_size=6)
