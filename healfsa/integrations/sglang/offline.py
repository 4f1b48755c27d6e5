"""Healed and constrained generation over `sglang.Engine`.

In: an engine started with ``grammar_backend="healfsa"``, prompts, grammars. Out: what follows each prompt.
Idea: prompts go in as ids without their tails, the tails and the grammars as specs inside a JSON Schema; the answers'
    ids come back as bytes.
Not here: the grammar backend.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import healfsa
from healfsa.errors import PromptError
from healfsa.integrations.remote import pieces
from healfsa.integrations.spec import SPEC_KEYWORD, Spec


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
        source = vocabulary or healfsa.Vocabulary.from_tokenizer(engine.tokenizer_manager.tokenizer)
        self.engine = healfsa.Engine(source)

    def generate(self, prompts: Any, grammar: Any = None, **options: Any) -> Any:
        """Continue one prompt, or each of a list.

        Parameters
        ----------
        prompts : str, token ids, or a list of them
        grammar : Grammar, description of `Spec`, None, or a list with one a prompt
        heal, prefill, max_new_tokens, stop
            As for `healfsa.integrations.transformers.generate`.
        **options
            Everything else goes into SGLang's `sampling_params`; `temperature` is 0 unless it is given.
        """
        single = isinstance(prompts, str) or (bool(prompts) and isinstance(prompts[0], int))
        batch = [prompts] if single else list(prompts)
        grammars = list(grammar) if isinstance(grammar, (list, tuple)) else [grammar] * len(batch)
        if len(grammars) != len(batch):
            raise PromptError(f"{len(grammars)} grammars for {len(batch)} prompts", hint="give one, or one a prompt")
        stop, heal, prefill, settings = _split(options)
        cuts = [self._cut(each, heal, prefill) for each in batch]
        params = [self._params(each, cut, settings) for each, cut in zip(grammars, cuts)]
        answers = self.server.generate(input_ids=[cut.input_ids for cut in cuts], sampling_params=params)
        texts = [self._text(cut, answer["output_ids"], stop) for cut, answer in zip(cuts, answers)]
        return texts[0] if single else texts

    def stream(self, prompt: Any, grammar: Any = None, **options: Any) -> Iterator[str]:
        """Yield the continuation of one prompt in pieces."""
        stop, heal, prefill, settings = _split(options)
        cut = self._cut(prompt, heal, prefill)
        params = self._params(grammar, cut, settings)
        answers = self.server.generate(input_ids=cut.input_ids, sampling_params=params, stream=True)
        return pieces(self.engine, cut, _fresh(answers), stop)

    def _cut(self, prompt: Any, heal: str | int, prefill: Any) -> Any:
        reading = {"parse_special": True} if isinstance(prompt, (str, bytes)) else {}
        return self.engine.heal(prompt, heal, prefill, least=1, **reading)

    def _params(self, grammar: Any, cut: Any, settings: dict[str, Any]) -> dict[str, Any]:
        params = {"temperature": 0.0} | settings
        params["max_new_tokens"] = params.get("max_new_tokens", 256) + cut.n_removed
        if grammar is not None or cut.owed:
            params["json_schema"] = json.dumps({SPEC_KEYWORD: Spec.of(grammar, cut).text()})
        return params

    def _text(self, cut: Any, ids: Sequence[int], stop: Any) -> str:
        return "".join(pieces(self.engine, cut, [ids], stop))


def _split(options: dict[str, Any]) -> tuple[Any, Any, Any, dict[str, Any]]:
    settings = dict(options)
    return settings.pop("stop", ()), settings.pop("heal", "auto"), settings.pop("prefill", None), settings


def _fresh(answers: Any) -> Iterator[list[int]]:
    """Yield the ids that each answer adds, whether answers hold all ids or only new ones."""
    seen = 0
    for answer in answers:
        ids, total = list(answer["output_ids"]), answer["meta_info"]["completion_tokens"]
        fresh = ids[seen:] if len(ids) == total else ids
        seen += len(fresh)
        yield fresh
