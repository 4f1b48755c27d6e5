"""What to do about a syntax error of `re`, or of ECMAScript as we word it.

In: the words of an error. Out: a hint. Idea: a table from beginnings of messages.
Cost: O(table). Not here: the errors themselves (see python_dialect).
"""

from __future__ import annotations

_HINTS = (
    ("missing ), unterminated subpattern", "close the group with ), or write \\( for the character itself"),
    ("missing ), unterminated comment", "close the comment with )"),
    ("unbalanced parenthesis", "open the group, or write \\) for the character itself"),
    ("unterminated character set", "close the class with ], or write \\[ for the character itself"),
    ("nothing to repeat", "put something before the quantifier, or a backslash for the character itself"),
    ("multiple repeat", "put the repeated part into a group, as in (?:a*)*"),
    ("min repeat greater than max repeat", "the smaller number comes first, as in {2,5}"),
    ("the repetition number is too large", "Python counts to 4,294,967,294; write {n,} or * where there is no bound"),
    ("bad escape (end of pattern)", "write two backslashes for the character itself"),
    ("bad escape", "leave the backslash out where the letter itself is meant, or write two for a backslash"),
    ("bad character range", "the lower character comes first; write \\- for the hyphen itself"),
    ("look-behind requires fixed-width pattern", 'dialect="ecma" has look-behind of any width'),
    ("global flags not at the start", "move the flags to the front, or write a group with flags, as in (?i:...)"),
    ("unknown extension ?<", "a named group is (?P<name>...) in Python, a look-behind (?<=...) or (?<!...)"),
    ("unknown extension", "a group begins with (, (?:, (?P<name>, (?=, (?!, (?<=, (?<!, (?> or (?flags:"),
    ("redefinition of group name", "give each group a name of its own"),
    ("unknown group name", "name a group with (?P<name>...) first"),
    ("invalid group reference", "there is no group of that number; write \\\\ for a backslash itself"),
    ("incomplete escape", "two hexadecimal digits follow \\x, four \\u and eight \\U"),
    ("undefined character name", "names are those of the Unicode standard, as in \\N{GREEK SMALL LETTER ALPHA}"),
    ("missing {", "a character by its name is written \\N{NAME}"),
    ("octal escape value", "write \\u and four hexadecimal digits for characters beyond \\377"),
    ("bad inline flags: cannot use 'L'", "leave it out: texts are Unicode"),
    ("bad character in group name", "a name is a word: letters, digits and _, no digit first"),
    ("unexpected end of pattern", "something is missing at the end"),
    ("missing >", "close the name with >"),
    ("missing ), unterminated group", "close the group with ), or write \\( for the character itself"),
    ("unmatched ')'", "open the group, or write \\) for the character itself"),
    ("unterminated character class", "close the class with ], or write \\[ for the character itself"),
    ("numbers out of order", "the smaller number comes first, as in {2,5}"),
    ("a backslash at the end", "write two backslashes for the character itself"),
    ("range out of order", "the lower character comes first; write \\- for the hyphen itself"),
    ("unknown escape", "leave the backslash out where the letter itself is meant, or write two for a backslash"),
    ("unknown kind of group", "a group begins with (, (?:, (?<name>, (?=, (?!, (?<=, (?<! or (?flags:"),
    ("there is no group", "write \\\\ for a backslash itself"),
    ("unknown property", "names are those of the Unicode standard, as in \\p{L}, \\p{Script=Greek} or \\p{Alphabetic}"),
)
_ANY = "the mark shows the place; a backslash makes the character behind it an ordinary one"


def hint_for(message: str) -> str:
    """Return what can be done about an error, from its words."""
    return next((hint for beginning, hint in _HINTS if message.startswith(beginning)), _ANY)
