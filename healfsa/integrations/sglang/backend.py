"""SGLang's grammar backend over our matchers.

In: SGLang's grammar keys (json, regex, ebnf, structural_tag). Out: its grammar objects.
Idea: one compiled grammar is shared by all requests (`copy` forks a matcher); a batch is filled in one call and applied
    by our kernel. A schema that holds only ``x-healfsa`` is a spec: with it a request is healed, too.
Source: sglang.srt.constrained.base_grammar_backend (0.5.23).
Not here: cutting prompts (see offline).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from sglang.srt.constrained.base_grammar_backend import BaseGrammarBackend, BaseGrammarObject, InvalidGrammarObject

import healfsa
from healfsa.errors import HealFSAError
from healfsa.integrations.spec import SPEC_KEYWORD, Spec, make


class HealFSAGrammar(BaseGrammarObject):
    """One request's place in its grammar."""

    def __init__(self, matcher: healfsa.Matcher) -> None:
        super().__init__()
        self.matcher = matcher

    def accept_token(self, token: int) -> None:
        """Advance by one token; raises (a ValueError, which aborts the request) where it is not allowed."""
        if self.matcher.is_terminated:
            return
        try:
            self.matcher.accept_token(token)
        except HealFSAError as refused:
            raise ValueError(str(refused)) from None
        self.current_token = token

    def rollback(self, k: int) -> None:
        """Take back the last `k` tokens."""
        self.matcher.rollback(k)

    def is_terminated(self) -> bool:
        """Say whether the text has ended."""
        return self.matcher.is_terminated

    def copy(self) -> HealFSAGrammar:
        """Return a request of its own at the same place."""
        return HealFSAGrammar(self.matcher.fork())

    def allocate_vocab_mask(self, vocab_size: int, batch_size: int, device: Any) -> torch.Tensor:
        """Return int32[batch_size, ceil(V / 32)] on the CPU, all tokens allowed."""
        return torch.from_numpy(healfsa.allocate_bitmask(batch_size, self.matcher.index.vocabulary.size))

    def fill_vocab_mask(self, vocab_mask: torch.Tensor, idx: int) -> None:
        """Write one row."""
        self.fill_vocab_mask_batched([(idx, self)], vocab_mask)

    @staticmethod
    def fill_vocab_mask_batched(entries: Sequence[Any], vocab_mask: torch.Tensor) -> None:
        """Write the listed rows; a row that fails allows only the end of text."""
        rows, grammars = zip(*entries)
        healfsa.Batch([each.matcher for each in grammars]).fill_bitmask(vocab_mask.numpy(), rows)

    @staticmethod
    def reset_vocab_mask(vocab_mask: torch.Tensor) -> None:
        """Allow every token."""
        vocab_mask.fill_(-1)

    @staticmethod
    def move_vocab_mask(vocab_mask: torch.Tensor, device: Any) -> torch.Tensor:
        """Return the mask on the logits' device."""
        return vocab_mask.to(device, non_blocking=True)

    @staticmethod
    def apply_vocab_mask(logits: torch.Tensor, vocab_mask: torch.Tensor) -> None:
        """Mask the logits in place."""
        healfsa.apply_bitmask(logits, vocab_mask)

    # Text that has no alternative.

    def try_jump_forward(self, tokenizer: Any) -> tuple[list[int], str] | None:
        """Return the tokens that must follow, and their text; a tail that may still merge is held back.

        None where there is a choice, or where the tokens end inside a character.
        """
        ids = [] if self.matcher.is_terminated else self.matcher.forced_tokens()
        if not ids:
            return None
        try:
            return ids, self.matcher.index.vocabulary.decode_bytes(ids).decode()
        except UnicodeDecodeError:
            return None

    def jump_forward_str_state(self, helper: tuple[list[int], str]) -> tuple[str, int]:
        """Return the text of the jump, and a state that means nothing."""
        return helper[1], -1

    def jump_and_retokenize(self, old_output_ids: list[int], new_output_ids: list[int], next_state: int) -> None:
        """Follow a request whose last tokens were replaced: back to where both agree, then on."""
        same = 0
        while same < min(len(old_output_ids), len(new_output_ids)) and old_output_ids[same] == new_output_ids[same]:
            same += 1
        self.matcher.rollback(len(old_output_ids) - same)
        self.matcher.accept_tokens(new_output_ids[same:])


class HealFSAGrammarBackend(BaseGrammarBackend):
    """SGLang's backend interface.

    Parameters
    ----------
    tokenizer : transformers tokenizer
    vocab_size : int
        Width of the model's logits.
    eos_token_ids : iterable of int, optional
        Ids that end a text; by default what the tokenizer says.
    """

    def __init__(self, tokenizer: Any, vocab_size: int, eos_token_ids: Iterable[int] | None = None) -> None:
        super().__init__()
        ends = [*(eos_token_ids or ())] or None
        own = getattr(tokenizer, "eos_token_id", None)
        if ends is not None and own is not None and own not in ends:
            ends.insert(0, own)
        vocabulary = healfsa.Vocabulary.from_tokenizer(tokenizer, vocab_size=vocab_size, eos_ids=ends)
        self.engine = healfsa.Engine(vocabulary)

    def dispatch_json(self, key_string: str) -> BaseGrammarObject:
        """Return the grammar of a JSON Schema, or of a spec."""
        if key_string == "$$ANY$$":
            return self._grammar({"json": {"type": "object"}})
        return self._spec(key_string) if SPEC_KEYWORD in key_string else self._schema(key_string)

    def dispatch_regex(self, key_string: str) -> BaseGrammarObject:
        """Return the grammar of a pattern."""
        return self._grammar({"regex": key_string})

    def dispatch_ebnf(self, key_string: str) -> BaseGrammarObject:
        """Return the grammar of GBNF, or of Lark."""
        return self._grammar({"gbnf" if "::=" in key_string else "lark": key_string})

    def dispatch_structural_tag(self, key_string: str) -> BaseGrammarObject:
        """Return the grammar of a structural tag."""
        return self._made(
            lambda: self.engine.matcher(healfsa.tags.structural_tag(key_string, vocabulary=self.engine.vocabulary))
        )

    def _spec(self, text: str) -> BaseGrammarObject:
        value = json.loads(text)
        given = value.get(SPEC_KEYWORD) if isinstance(value, dict) else None
        if given is None:
            return self._schema(text)
        return self._made(lambda: Spec.read(given).matcher(self.engine))

    def _schema(self, text: str) -> BaseGrammarObject:
        return self._grammar({"json": text, "style": "ordered"})

    def _grammar(self, constraint: dict[str, Any]) -> BaseGrammarObject:
        return self._made(lambda: self.engine.matcher(make(constraint)))

    def _made(self, maker: Any) -> BaseGrammarObject:
        try:
            return HealFSAGrammar(maker())
        except (HealFSAError, ValueError) as wrong:
            return InvalidGrammarObject(str(wrong))
