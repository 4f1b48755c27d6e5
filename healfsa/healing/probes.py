"""The texts that a pre-tokenizer is questioned with.

In: the description of a pre-tokenizer, where there is one. Out: characters, contexts and continuations.
Idea: what a pre-tokenizer tells apart is classes of characters and a few literal words (contractions).  A character of
    every general category, the characters that patterns commonly name, and every literal that this pattern names are
    enough to show all of its behaviour.
Cost: none.
Source: own; the contractions are those of GPT-2's pattern, which byte-level tokenizers use without writing it down.
Not here: what the answers mean (`segmenter.py`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

#: One or more characters of every kind that a pattern may tell apart.
CHARACTERS = tuple(
    "aA1 \n.\r\t\u00a0\u3000\u2028\x0b\x1f\x85\u01c5\u02b0\u4e2d\u3042\u30a2\u0e01\uac00\u0301\u0903\u20dd"
    "\u0660\u2160\u00b2_-()\u00ab\u00bb+$^\u00a9\U0001f600\u200d\u00ad\ue000\U0010fffd\u0378\ufe0f/\\'\u2019\"\u2581\x00"
)
CONTRACTIONS = ("'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "'S", "'LL", "'rE")
_LITERAL = re.compile(r"(?:^|[|(:])((?:[^\\\[\](){}|?*+.^$\s]){2,4})(?=[|)])")
_ESCAPED = re.compile(r"\\[pP]\{[^}]*\}|\\x\{[^}]*\}|\\.")


@dataclass(frozen=True, slots=True)
class Probes:
    """What to ask.

    Attributes
    ----------
    characters : tuple[str, ...]
        Characters whose classes are learned first.
    words : tuple[str, ...]
        Literal words that the pattern treats as one.
    """

    characters: tuple[str, ...]
    words: tuple[str, ...]

    @property
    def heads(self) -> tuple[str, ...]:
        """Every proper beginning of a word, alone and behind a letter."""
        begins = [word[:k] for word in self.words for k in range(1, len(word))]
        return tuple(dict.fromkeys([*begins, *("a" + begin for begin in begins)]))

    @property
    def tails(self) -> tuple[str, ...]:
        """Every end of a word, alone and followed by more of the same kind."""
        ends = [word[k:] for word in self.words for k in range(len(word))]
        return tuple(dict.fromkeys([*ends, *(end + "a" for end in ends)]))


def probes_for(description: dict[str, Any] | None) -> Probes:
    """Return the probes for a pre-tokenizer as `tokenizers` describes it (None: another package's)."""
    patterns = _patterns(description) if description else []
    words = list(CONTRACTIONS)
    characters = list(CHARACTERS)
    for pattern in patterns:
        words += [word for found in _LITERAL.findall(pattern) for word in (found, found.upper())]
        characters += [c for c in _ESCAPED.sub("", pattern) if c not in "[](){}|?*+.^$\\<>=!:,&"]
    characters += [c for word in words for c in word]
    return Probes(tuple(dict.fromkeys(characters)), tuple(dict.fromkeys(words)))


def _patterns(description: Any) -> list[str]:
    """Return every pattern and literal string in a description."""
    if isinstance(description, dict):
        here = [description[key] for key in ("Regex", "String") if isinstance(description.get(key), str)]
        return here + [pattern for value in description.values() for pattern in _patterns(value)]
    if isinstance(description, list):
        return [pattern for value in description for pattern in _patterns(value)]
    return []
