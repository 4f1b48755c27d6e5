"""What a call of `model.generate` may not say here, and what transformers says of the rest, as errors of our own.

In: options as they were given. Out: `PromptError`s that name the option and what to do.
Idea: what would be wrong silently (a prompt that is healed twice, ids beside the cut ones) is refused before anything
    is generated; what transformers raises of options that it cannot use is said again with their names.
Cost: a look at each option.
Source: own.
Not here: what the options do.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from transformers import GenerationConfig

from healfsa.arguments import shown
from healfsa.errors import HealFSAError, PromptError, VocabularyError
from healfsa.integrations.transformers.exact import option

#: What asks for more than one sequence a prompt.
ONE = ("num_return_sequences", "num_beams")
#: What is made from the prompts.
_MADE_HERE = ("attention_mask", "input_ids", "inputs", "inputs_embeds", "position_ids")
#: What can rule out tokens beside the grammar.
_RULING = (
    "bad_words_ids", "begin_suppress_tokens", "encoder_no_repeat_ngram_size", "forced_bos_token_id", "logits_processor",
    "min_length", "min_new_tokens", "no_repeat_ngram_size", "prefix_allowed_tokens_fn", "sequence_bias",
    "suppress_tokens",
)  # fmt: skip
_WRONG = (ValueError, TypeError, AttributeError, LookupError, NotImplementedError)


def check(model: Any, options: dict[str, Any]) -> None:
    """Refuse options of `Generator.generate` that cannot be handed on.

    Raises
    ------
    PromptError
        See above.
    """
    if made := [name for name in _MADE_HERE if options.get(name) is not None]:
        raise PromptError(
            f"{', '.join(made)} cannot be given", hint="prompts are encoded here: give texts, or token ids"
        )
    for name in ("logits_processor", "stopping_criteria"):
        if (given := options.get(name)) is not None and not isinstance(given, (list, tuple)):
            raise PromptError(f"{name} is a list, not {shown(given)}")
    config = options.get("generation_config")
    if config is not None and not isinstance(config, GenerationConfig):
        raise PromptError(f"generation_config is a transformers.GenerationConfig, not {shown(config)}")
    if getattr(options.get("custom_generate"), "heals", False):
        raise PromptError(
            "the prompt would be healed twice", hint="leave custom_generate out here, or call model.generate with it"
        )
    refuse_endings(model, options)


def refuse_endings(model: Any, options: dict[str, Any]) -> None:
    """Refuse what would change the end of a prompt beside us, or end a text wherever it stands."""
    if option(model, options, "token_healing", False):
        raise PromptError("token_healing would heal the prompt twice", hint="leave it out; heal= says how to heal")
    if option(model, options, "forced_eos_token_id", None) is not None:
        raise PromptError(
            "forced_eos_token_id ends a text wherever it stands", hint="leave it out: each row ends with its budget"
        )


@contextmanager
def refusing(options: dict[str, Any]) -> Iterator[None]:
    """Say as a PromptError what transformers says of `options` that it cannot use."""
    try:
        yield
    except HealFSAError:
        raise
    except _WRONG as refused:
        said = str(refused).splitlines()[0] if str(refused) else repr(refused)
        raise PromptError(
            f"transformers refuses this call: {said}", hint=f"it was given {sorted(options)}"
        ) from refused


def check_end(engine: Any, grammars: Any) -> None:
    """Refuse grammars where no token ends a text: one that is complete could only go on wrongly."""
    if any(grammar is not None for grammar in grammars) and not engine.vocabulary.eos_ids:
        raise VocabularyError(
            "a text inside a grammar cannot end: the vocabulary has no end-of-text id",
            hint="Vocabulary.from_tokenizer(..., eos_ids=[...])",
        )


def ruling(model: Any, options: dict[str, Any]) -> list[str]:
    """Return the names of the options that can rule out what a grammar allows."""
    return [name for name in _RULING if option(model, options, name, None)]


def conflict(names: list[str]) -> PromptError:
    """Return the error of a row in which what is named forbids all that the grammar allows."""
    beside = ", ".join(names) or "another logits processor"
    return PromptError(
        f"{beside} and the grammar have no token in common: all that may follow is ruled out",
        hint="leave that out, or write it into the grammar",
    )
