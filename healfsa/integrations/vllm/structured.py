"""The engine behind vLLM's own ``structured_outputs`` and ``response_format``, through its configuration.

In: vLLM's structured-output requests. Out: its StructuredOutputGrammar objects over our matchers.
Idea: the scheduler is a class named on the command line; ours is vLLM's with the manager's backend set beforehand, so
    no attribute of vLLM is patched. A schema that holds only ``x-healfsa`` is a spec: with it a request is healed, too.
Cost: as `Matcher`: masks are numpy rows filled in the scheduler's process.
Source: vllm.v1.structured_output.backend_types (0.32, 0.33).
Not here: logits processors.
"""

from __future__ import annotations

import json
import logging
from typing import Any

import torch
from vllm.v1.core.sched.async_scheduler import AsyncScheduler
from vllm.v1.structured_output.backend_types import (
    StructuredOutputBackend,
    StructuredOutputGrammar,
    StructuredOutputOptions,
)

import healfsa
from healfsa.errors import GrammarError, HealFSAError, MatcherError
from healfsa.integrations.history import allow_only
from healfsa.integrations.spec import SPEC_KEYWORD, Spec, make
from healfsa.integrations.vllm.setup import engine_of

log = logging.getLogger("healfsa.vllm")


class HealFSAGrammar(StructuredOutputGrammar):
    """One request's place in its grammar."""

    def __init__(self, matcher: healfsa.Matcher) -> None:
        self.matcher = matcher
        self._failed = False  # only the end of text is left: vLLM's scheduler, and its other requests, go on

    def accept_tokens(self, request_id: str, tokens: list[int]) -> bool:
        """Advance; False, and nothing taken, where a token is not allowed. What follows the end is ignored."""
        taken = 0
        if self._failed:
            return True
        try:
            for token_id in tokens:
                if self.matcher.is_terminated:
                    break
                self.matcher.accept_token(token_id)
                taken += 1
        except MatcherError:
            self.matcher.rollback(taken)
            return False
        return True

    def validate_tokens(self, tokens: list[int]) -> list[int]:
        """Return the first tokens that would be accepted, without advancing."""
        return [] if self._failed or self.matcher.is_terminated else tokens[: self.matcher.validate_tokens(tokens)]

    def rollback(self, num_tokens: int) -> None:
        """Take back the last tokens."""
        self.matcher.rollback(num_tokens)

    def fill_bitmask(self, bitmask: torch.Tensor, batch_index: int) -> None:
        """Write one row."""
        try:
            if not self._failed:
                self.matcher.fill_bitmask(bitmask, batch_index)
        except HealFSAError as failure:
            self._failed = True
            log.warning("a request ends here: %s", failure)
        if self._failed:
            allow_only(bitmask[batch_index].numpy(), self.matcher.index.vocabulary.eos_ids)

    def is_terminated(self) -> bool:
        """Say whether the text has ended."""
        return self.matcher.is_terminated

    def reset(self) -> None:
        """Go back to the start."""
        self.matcher.reset()


class HealFSABackend(StructuredOutputBackend):
    """vLLM's backend interface; one an engine."""

    def __init__(self, vllm_config: Any, tokenizer: Any, vocab_size: int) -> None:
        super().__init__(vllm_config, tokenizer, vocab_size)
        self._engine = engine_of(tokenizer, vllm_config.model_config)

    def compile_grammar(
        self, request_type: StructuredOutputOptions, grammar_spec: str, stop_token_ids: set[int] | None = None
    ) -> HealFSAGrammar:
        """Return the grammar of a request; called in threads."""
        return HealFSAGrammar(self._matcher(request_type, grammar_spec))

    def _matcher(self, kind: StructuredOutputOptions, text: str) -> healfsa.Matcher:
        if kind is StructuredOutputOptions.STRUCTURAL_TAG:
            return self._engine.matcher(healfsa.tags.structural_tag(text, vocabulary=self._engine.vocabulary))
        spec = spec_of(text) if kind is StructuredOutputOptions.JSON else None
        if spec is not None:
            return spec.matcher(self._engine)
        return self._engine.matcher(make(_constraint(kind, text)))

    def allocate_token_bitmask(self, max_num_seqs: int) -> torch.Tensor:
        """Return int32[max_num_seqs, ceil(V / 32)], all tokens allowed."""
        return torch.from_numpy(healfsa.allocate_bitmask(max_num_seqs, self.vocab_size))

    def destroy(self) -> None:
        """Nothing to give back."""


def spec_of(schema: str) -> Spec | None:
    """Return the spec that a schema holds under ``x-healfsa``, None for an ordinary schema."""
    if SPEC_KEYWORD not in schema:
        return None
    value = json.loads(schema)
    return Spec.read(value[SPEC_KEYWORD]) if isinstance(value, dict) and SPEC_KEYWORD in value else None


def _constraint(kind: StructuredOutputOptions, text: str) -> dict[str, Any]:
    options = StructuredOutputOptions
    if kind is options.JSON:
        return {"json": text, "style": "ordered"}
    if kind is options.JSON_OBJECT:
        return {"json": {"type": "object"}}
    if kind is options.REGEX:
        return {"regex": text}
    if kind is options.CHOICE:
        return {"gbnf": text} if "::=" in text else {"choice": json.loads(text)}
    if kind is options.GRAMMAR:
        return {"gbnf": text} if "::=" in text else {"lark": text}
    raise GrammarError(f"a structured output of kind {kind} is not known")


class HealFSAScheduler(AsyncScheduler):
    """vLLM's scheduler whose structured outputs are compiled here; for ``--scheduler-cls``."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        manager = self.structured_output_manager
        width = self.vllm_config.model_config.get_vocab_size()
        manager.backend = HealFSABackend(self.vllm_config, manager.tokenizer, width)
