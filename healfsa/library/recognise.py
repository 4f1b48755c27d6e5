"""Which tool style a tokenizer's model writes.

In: a tokenizer or vocabulary, its chat template. Out: the style's name and the evidence for it.
Idea: each style's file lists tokens and pieces of chat templates that only its models have; the rule with the most
    evidence that holds completely wins, so a more specific style beats the one that it grew out of.
Cost: O(styles).
Not here: model names, which say nothing about a fine-tune.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from healfsa.arguments import string
from healfsa.errors import GrammarError
from healfsa.library.styles import Rule, get_style, style_names


@dataclass(frozen=True, slots=True)
class Recognised:
    """A style's name, why it was chosen, and which others fit as well."""

    style: str
    why: str
    also: tuple[str, ...] = ()


def recognise(tokenizer: Any, chat_template: str | None = None) -> Recognised:
    """Return the tool style of a tokenizer.

    Parameters
    ----------
    tokenizer : healfsa.Vocabulary or tokenizer
        Anything with special and added tokens; a `chat_template` on it is used too.
    chat_template : str, optional
        The template, where the tokenizer does not bring it.

    Raises
    ------
    GrammarError
        No style fits; the message says what was looked at.
    """
    tokens = _tokens(tokenizer)
    template = _template(tokenizer) if chat_template is None else string("a chat template", chat_template, GrammarError)
    found = [
        (len(rule.tokens) + 2 * len(rule.template), name, rule)
        for name in style_names()
        for rule in get_style(name).rules
        if _holds(rule, tokens, template)
    ]
    if not found:
        seen = "its chat template and added tokens" if template else "its added tokens (there is no chat template)"
        raise GrammarError(f"no tool style fits the tokenizer: looked at {seen}", hint="name one: style='hermes'")
    found.sort(key=lambda entry: (-entry[0], entry[1]))
    _, name, rule = found[0]
    also = tuple(dict.fromkeys(other for _, other, _ in found if other != name))
    return Recognised(name, _why(rule), also)


def _holds(rule: Rule, tokens: frozenset[str], template: str) -> bool:
    if any(token not in tokens for token in rule.tokens) or any(part not in template for part in rule.template):
        return False
    return not any(part in template or part in tokens for part in rule.without)


def _why(rule: Rule) -> str:
    facts = []
    if rule.tokens:
        facts.append(f"the tokenizer has {' and '.join(rule.tokens)}")
    if rule.template:
        facts.append(f"the chat template has {' and '.join(map(repr, rule.template))}")
    return "; ".join(facts)


def _tokens(tokenizer: Any) -> frozenset[str]:
    if hasattr(tokenizer, "specials") and hasattr(tokenizer, "added_text"):
        return frozenset(tokenizer.specials) | frozenset(tokenizer.added_text)
    if hasattr(tokenizer, "get_added_vocab"):
        return frozenset(tokenizer.get_added_vocab())
    if hasattr(tokenizer, "get_added_tokens_decoder"):
        return frozenset(token.content for token in tokenizer.get_added_tokens_decoder().values())
    raise GrammarError(
        f"a {type(tokenizer).__name__} does not tell its special tokens",
        hint="pass healfsa.Vocabulary.from_tokenizer(...)",
    )


def _template(tokenizer: Any) -> str:
    """Return the chat template that the tokenizer brings, the one for tools where it has several."""
    for holder in (tokenizer, getattr(tokenizer, "tokenizer", None), getattr(tokenizer, "source", None)):
        template = getattr(holder, "chat_template", None)
        if isinstance(template, dict):
            template = template.get("tool_use") or template.get("default")
        if isinstance(template, str) and template:
            return template
    return ""
