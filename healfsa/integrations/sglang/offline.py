"""Healed and constrained generation over `sglang.Engine`.

In: an engine started with ``grammar_backend="healfsa"``, prompts, grammars. Out: what follows each prompt.
Idea: prompts go in as ids without their tails, the tails and the grammars as specs inside a JSON Schema; the answers'
    ids come back as bytes.
Not here: the grammar backend.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import healfsa
from healfsa.errors import HealFSAError
from healfsa.integrations.budget import most
from healfsa.integrations.loop import Wishes, Writing, as_batch, one_a_prompt
from healfsa.integrations.spec import SPEC_KEYWORD, checked
from healfsa.integrations.start import start_id


class Generator:
    """An `sglang.Engine` that heals.

    Parameters
    ----------
    engine : sglang.Engine
        Started with ``grammar_backend="healfsa"``.
    vocabulary : Vocabulary, optional
        By default that of the engine's tokenizer.
    """

    def __init__(self, engine: Any, vocabulary: healfsa.Vocabulary | None = None) -> None:
        self.server = engine
        manager = getattr(engine, "tokenizer_manager", None)
        if manager is None:
            raise HealFSAError(f"an sglang.Engine is needed, not {type(engine).__name__}")
        source = vocabulary or healfsa.Vocabulary.from_tokenizer(manager.tokenizer)
        self.engine = healfsa.Engine(source)

    def generate(self, prompts: Any, grammar: Any = None, *, details: bool = False, **options: Any) -> Any:
        """Continue one prompt, or each of a list.

        Parameters
        ----------
        prompts : str, token ids, or a list of them
        grammar : Grammar, description of `Spec`, None, or a list with one a prompt
        details : bool
            Return `healfsa.integrations.loop.Completion` objects in place of texts.
        heal, prefill, max_new_tokens, stop, parse_special
            As for `healfsa.integrations.transformers.generate`.
        **options
            Everything else goes into SGLang's `sampling_params`; `temperature` is 0 unless it is given.
        """
        batch, single = as_batch(prompts)
        grammars = one_a_prompt(grammar, len(batch), "grammars")
        wishes, settings = Wishes.of(options)
        tails = one_a_prompt(wishes.prefill, len(batch), "prefills")
        cuts = [wishes.cut(self.engine.heal, each, tail) for each, tail in zip(batch, tails)]
        params = [self._params(each, cut, wishes.new, settings) for each, cut in zip(grammars, cuts)]
        answers = self.server.generate(input_ids=[self._input(cut) for cut in cuts], sampling_params=params)
        done = [self._writing(cut, wishes).completion(each["output_ids"]) for cut, each in zip(cuts, answers)]
        results = done if details else [each.text for each in done]
        return results[0] if single else results

    def stream(self, prompt: Any, grammar: Any = None, **options: Any) -> Iterator[str]:
        """Yield the continuation of one prompt in pieces."""
        wishes, settings = Wishes.of(options)
        cut = wishes.cut(self.engine.heal, prompt, wishes.prefill)
        params = self._params(grammar, cut, wishes.new, settings)
        answers = self.server.generate(input_ids=self._input(cut), sampling_params=params, stream=True)
        return self._writing(cut, wishes).pieces(_fresh(answers))

    def _input(self, cut: Any) -> list[int]:
        return cut.input_ids or [start_id(self.engine.vocabulary)]

    def _params(self, grammar: Any, cut: Any, new: int, settings: dict[str, Any]) -> dict[str, Any]:
        params = {"temperature": 0.0} | settings | {"max_new_tokens": max(1, self._room(cut, new))}
        if grammar is not None or cut.owed:
            params["json_schema"] = json.dumps({SPEC_KEYWORD: checked(self.engine, grammar, cut)})
        return params

    def _room(self, cut: Any, new: int) -> int:
        """Return the greatest number of tokens, not more than SGLang takes behind this prompt."""
        context = getattr(self.server.tokenizer_manager, "context_len", None)
        return most(cut, new) if context is None else min(most(cut, new), context - 1 - len(self._input(cut)))

    def _writing(self, cut: Any, wishes: Wishes) -> Writing:
        return Writing(self.engine.vocabulary, cut, wishes.new, wishes.stop)


def _fresh(answers: Any) -> Iterator[int]:
    """Yield the ids that each answer adds, whether answers hold all ids or only new ones."""
    seen = 0
    for answer in answers:
        ids, total = list(answer["output_ids"]), answer["meta_info"]["completion_tokens"]
        fresh = ids[seen:] if len(ids) == total else ids
        seen += len(fresh)
        yield from fresh
