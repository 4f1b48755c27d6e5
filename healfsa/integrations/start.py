"""The token that stands before a text of which nothing is kept.

In: a vocabulary. Out: a token id. Idea: every model needs one token to begin with: the separator of documents where
    there is one, else the beginning of text, else an end of text: models see one of them before every text.
Cost: O(1). Not here: how a prompt is cut (see healfsa.healing).
"""

from __future__ import annotations

from healfsa.errors import PromptError
from healfsa.vocab import Vocabulary


def start_id(vocabulary: Vocabulary) -> int:
    """Return the id that a model is given in place of an empty prompt.

    Raises
    ------
    PromptError
        The vocabulary has neither a beginning nor an end of text.
    """
    for found in (vocabulary.specials.get("<|endoftext|>"), vocabulary.bos_id, *vocabulary.eos_ids):
        if found is not None:
            return int(found)
    message = "nothing of the prompt is kept, and the vocabulary has no token to start with"
    raise PromptError(message, hint="give a longer prompt, or Vocabulary.from_tokenizer(..., eos_ids=[...])")
