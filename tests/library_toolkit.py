"""For the tests of tool styles: small vocabularies with the markers of a style, and texts cut at their markers."""

from __future__ import annotations

import re
from functools import lru_cache

import numpy as np
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

from healfsa.grammar.tags import data
from healfsa.library import get_style, tool_calls
from healfsa.library.ready import example_tools
from healfsa.vocab import Vocabulary

END = "<|the end|>"
TOOLS = example_tools()
MESSAGE = {"to": "Ada", "body": 'x <y> {z} [w], "q" é', "labels": ["a, b", "}"], "options": {"urgent": True}}
CALLS = [{"name": "send_message", "arguments": MESSAGE}, {"name": "now", "arguments": {}}]


@lru_cache(None)
def vocabulary_for(name: str, either_special: bool = False) -> Vocabulary:
    """Byte-level BPE trained on the style's examples; `either` markers are special tokens, or added text."""
    style, table = get_style(name), data.table(f"tools/{name}")
    texts = [example["text"] for key in ("accepts", "rejects") for example in table[key]]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=420, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(texts * 3, trainer)
    either = [*style.either, *style.arguments.markers]
    tokenizer.add_special_tokens([AddedToken(m, special=True) for m in (END, *style.special)])
    tokenizer.add_tokens([AddedToken(m, special=either_special) for m in either])
    if either_special:
        tokenizer.add_special_tokens([AddedToken(m, special=True) for m in either])
    return Vocabulary.from_tokenizer(tokenizer, eos_ids=[tokenizer.token_to_id(END)])


def calls_for(name: str, *, either_special: bool = False, **options):
    """Return the tool calls of a style over the example tools, for its small vocabulary."""
    return tool_calls(TOOLS, name, vocabulary=vocabulary_for(name, either_special), **options)


def segments(text: str, specials) -> list[tuple[bool, str]]:
    """Return the pieces of a text: (is it a special token, the piece)."""
    if not specials:
        return [(False, text)] if text else []
    parts = re.split("(" + "|".join(map(re.escape, sorted(specials, key=len, reverse=True))) + ")", text)
    return [(index % 2 == 1, part) for index, part in enumerate(parts) if part]


def ids_of(vocabulary: Vocabulary, text: str, specials) -> list[int]:
    """Return token ids of a text; special tokens by their ids."""
    found: list[int] = []
    for special, part in segments(text, specials):
        found += [vocabulary.specials[part]] if special else vocabulary.encode(part)
    return found


def walk(automaton, state: int, text: str, specials) -> int:
    """Return the state behind a text, special tokens as symbols."""
    for special, part in segments(text, specials):
        if special:
            state = automaton.step_special(state, automaton.specials.index(part)) if part in automaton.specials else 0
        else:
            state = automaton.step(state, part.encode())
    return state


def tokens_of(row: np.ndarray) -> set[int]:
    """Return the ids in a mask row."""
    return set(np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist())


def allowed_by_definition(index, state: int) -> set[int]:
    """Return the tokens after which the automaton lives, one by one."""
    automaton, vocabulary = index.automaton, index.vocabulary
    found = {int(t) for t in vocabulary.trie.order if automaton.step(state, vocabulary.bytes_of(int(t)))}
    for number, name in enumerate(automaton.specials):
        if automaton.step_special(state, number):
            found.add(vocabulary.specials[name])
    return found | (set(vocabulary.eos_ids) if automaton.is_accepting(state) else set())
