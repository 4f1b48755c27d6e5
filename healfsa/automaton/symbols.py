"""What the programs of one automaton share: rules, special tokens and DISTINCT nodes, by number.

In: rules and names as a program meets them. Out: `Symbols`.
Idea: once a rule is loaded, its expression is not needed again; only what is still to be loaded is held.
Cost: one look-up a name. Not here: serialising (program).
"""

from __future__ import annotations

from collections.abc import MutableMapping
from weakref import WeakKeyDictionary

from healfsa.grammar import expression as ex


class Symbols:
    """Names that outlive one program: rules, special tokens and DISTINCT nodes by number.

    Attributes
    ----------
    promised : dict of int to Rule
        Rules by number whose bodies are not loaded yet, in the order in which they were met.
    names : list of str
        Names of all rules by number, for messages; empty once nothing more can be loaded.
    n_rules, n_loaded : int
        How many rules have a number, and how many the arena knows: one that could not be loaded is tried again.
    """

    __slots__ = (
        "distincts",
        "n_loaded",
        "n_rules",
        "names",
        "number_of_rule",
        "number_of_special",
        "promised",
        "specials",
    )

    def __init__(self) -> None:
        self.distincts: list[ex.Distinct] = []
        self.promised: dict[int, ex.Rule] = {}
        self.names: list[str] = []
        self.n_rules = self.n_loaded = 0
        self.number_of_rule: MutableMapping[ex.Rule, int] = {}
        self.specials: list[str] = []
        self.number_of_special: dict[str, int] = {}

    def rule(self, rule: ex.Rule) -> int:
        """Return the number of a rule, a new one if need be."""
        number = self.number_of_rule.get(rule)
        if number is None:
            number = self.number_of_rule[rule] = self.n_rules
            self.n_rules = number + 1
            self.names.append(rule.name)
            self.promised[number] = rule
        return number

    def loaded(self, bodies: list[int]) -> None:
        """Note that the arena knows all rules so far, those in `bodies` whole."""
        self.n_loaded = self.n_rules
        for number in bodies:
            del self.promised[number]

    def let_go(self) -> None:
        """Let go of the expressions that the arena holds.

        A later part is the body of a promised rule, or what means the same as an item. What neither of them holds
        any more they cannot name either, so rules are known weakly from the first load on.
        """
        if not self.promised and not self.distincts:
            self.number_of_rule, self.names = {}, []
        elif type(self.number_of_rule) is dict:
            self.number_of_rule = WeakKeyDictionary(self.number_of_rule)

    def special(self, name: str) -> int:
        """Return the number of a special token, a new one if need be."""
        number = self.number_of_special.setdefault(name, len(self.specials))
        if number == len(self.specials):
            self.specials.append(name)
        return number
