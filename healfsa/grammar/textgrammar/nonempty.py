"""Rules without the empty text, so that no recursion hides behind a part that may be empty.

In: rules, which of them may be empty, which are left-recursive. Out: equivalent rules.
Idea: the non-empty texts of a chain are those of its first part that is not empty, then everything behind it; so the
    first part of every chain reads something. Each left-recursive rule becomes "its non-empty texts, or nothing".
Cost: O(parts²) of a chain whose parts may all be empty.
Source: Hopcroft and Ullman, "Introduction to Automata Theory", 1979, section 4.4 (elimination of empty productions).
Not here: left recursion itself (see rules).
"""

from __future__ import annotations

from healfsa.grammar.expression import ANY_BYTE, ANY_BYTES, both, concat
from healfsa.grammar.textgrammar.parts import NO_TEXT, Chain, Either, Leaf, Part, Times, Use, accepts_empty, chained

_MARK = " (not empty)"  # no rule's name has a space


def rewritten(rules: dict[str, Part], nullable: set[str], recursive: frozenset[str]) -> dict[str, Part]:
    """Return rules of the same languages in which no left recursion is behind a part that may be empty."""
    return _Rewriter(rules, nullable, recursive).all()


class _Rewriter:
    def __init__(self, rules: dict[str, Part], nullable: set[str], recursive: frozenset[str]) -> None:
        self.rules = rules
        self.nullable = nullable
        self.recursive = recursive
        self.found: dict[str, Part] = {}

    def all(self) -> dict[str, Part]:
        """Return all rules, the new ones behind the old ones."""
        whole = {name: self.full(Use(name, 0)) if name in self.recursive else part for name, part in self.rules.items()}
        return {**whole, **self.found}

    def full(self, part: Part) -> Part:
        """Return a part as its non-empty texts, or nothing."""
        some = self.some(part)
        return Either((some, NO_TEXT)) if accepts_empty(part, self.nullable) else some

    def some(self, part: Part) -> Part:
        """Return the non-empty texts of a part."""
        if isinstance(part, Leaf):
            return Leaf(both(part.expression, concat(ANY_BYTE, ANY_BYTES)), False) if part.nullable else part
        if isinstance(part, Use):
            return self.use(part)
        if isinstance(part, Either):
            return Either(tuple(self.some(option) for option in part.parts))
        if isinstance(part, Times):
            least = 1 if accepts_empty(part.part, self.nullable) else max(part.least, 1)
            return Times(self.some(part.part), least, part.most)
        return self.chain(part.parts) if isinstance(part, Chain) else part

    def use(self, part: Use) -> Use:
        """Return the use of a rule without its empty text, which is made where it is first used."""
        if part.name not in self.recursive and part.name not in self.nullable:
            return part
        name = part.name + _MARK
        if name not in self.found:
            self.found[name] = NO_TEXT  # rules may use themselves
            self.found[name] = self.some(self.rules[part.name])
        return Use(name, part.at)

    def chain(self, parts: tuple[Part, ...]) -> Part:
        """Return the non-empty texts of a chain, by the first of its parts that is not empty."""
        rest = [self.full(part) for part in parts]
        options: list[Part] = []
        for k, part in enumerate(parts):
            options.append(chained(self.some(part), *rest[k + 1 :]))
            if not accepts_empty(part, self.nullable):
                break
        return Either(tuple(options))
