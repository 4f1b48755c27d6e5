"""Text grammars, context free: llama.cpp's GBNF, and the core of Lark that llguidance reads.

In: the text of a grammar. Out: a `Grammar`. Idea: syntax -> rules -> one expression whose references unfold lazily.
Not here: JSON Schema and regular expressions, which a Lark grammar can hold (see their rooms).
"""

from __future__ import annotations

from healfsa.arguments import string
from healfsa.errors import GrammarError
from healfsa.grammar.grammar import Grammar, make_grammar

__all__ = ["gbnf", "lark"]


def gbnf(text: str, start: str = "root") -> Grammar:
    """Return the grammar of a GBNF text.

    Parameters
    ----------
    text : str
        Rules as llama.cpp writes them.
    start : str
        The rule to begin with.

    Raises
    ------
    TextGrammarError
        The text is not a grammar; with line, column and caret. A left-recursive rule is solved where no part that may
        be empty stands before the recursion, else the cycle is named.
    UnsupportedFeature
        A reference to a token by its number.
    """
    from healfsa.grammar.textgrammar.gbnf_syntax import compile_gbnf

    _check(text, start)
    return make_grammar(compile_gbnf(text, start), "gbnf", text, start)


def lark(text: str, start: str = "start") -> Grammar:
    """Return the grammar of a Lark text.

    Parameters
    ----------
    text : str
        Rules, terminals, templates, `%import` from the lark package's libraries, `%ignore`, `%override`, `%extend`; and
        llguidance's `%json {...}`, `<special token>`, `x{m,n}`, and `&` and `~x` in terminals.
    start : str
        The rule to begin with.

    Raises
    ------
    TextGrammarError, UnsupportedFeature, MissingExtra
        As for `gbnf`; a library is imported and the `lark` package is not installed.
    """
    from healfsa.grammar.textgrammar.lark_grammar import compile_lark

    _check(text, start)
    return make_grammar(compile_lark(text, start), "lark", text, start)


def _check(grammar: str, start: str) -> None:
    string("a grammar", grammar, GrammarError, hint="give its text; of a file: Path(...).read_text()")
    string("start", start, GrammarError, hint="give the name of a rule")
