"""The token that stands before a text of which nothing is kept.

In: a vocabulary. Out: a token id. Idea: every model needs one token to begin with: the beginning of text where there is
    one, else an end of text, which models see before every text of their training.
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
    if vocabulary.bos_id is not None:
        return vocabulary.bos_id
    if vocabulary.eos_ids:
        return vocabulary.eos_ids[0]
    message = "nothing of the prompt is kept, and the vocabulary has no token to start with"
    raise PromptError(message, hint="give a longer prompt, or Vocabulary.from_tokenizer(..., eos_ids=[...])")
