"""Healed and constrained batches over `vllm.LLM`.

In: an LLM, prompts, grammars. Out: what follows each prompt.
Idea: prompts go in as ids without their tails, the tails and the grammars as specs; the answers' ids come back as
    bytes, so that the owed bytes come off exactly, and stop strings are looked for behind the prompt only.
Cost: that of the unhealed call.
Not here: what the engine does with a spec (see processors, structured).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from vllm import SamplingParams, TokensPrompt
from vllm.sampling_params import StructuredOutputsParams

import healfsa
from healfsa.errors import HealFSAError, PromptError
from healfsa.healing import TextStream
from healfsa.integrations.spec import SPEC_KEYWORD, Spec
from healfsa.integrations.start import start_id
from healfsa.integrations.vllm.setup import FIELD, engine_of


class Generator:
    """A `vllm.LLM` that heals.

    Parameters
    ----------
    llm : vllm.LLM
        Started with ``logits_processors=["healfsa.integrations.vllm:HealFSAProcessor"]``, or with
        ``scheduler_cls="healfsa.integrations.vllm.HealFSAScheduler"``.
    through : str
        "processor" or "scheduler": which of the two it was started with.
    """

    def __init__(self, llm: Any, through: str = "processor") -> None:
        if through not in ("processor", "scheduler"):
            raise PromptError(f"no way {through!r} into vLLM", hint="'processor' or 'scheduler'")
        self.llm = llm
        self.engine = engine_of(llm.get_tokenizer(), llm.llm_engine.vllm_config.model_config)
        self._through = through

    def generate(
        self,
        prompts: Any,
        grammar: Any = None,
        *,
        heal: str | int = "auto",
        prefill: Any = None,
        max_new_tokens: int = 256,
        stop: str | Sequence[str] = (),
        details: bool = False,
        **options: Any,
    ) -> Any:
        """Continue each prompt.

        Parameters
        ----------
        prompts : str, token ids, or a list of them
        grammar : Grammar, description of `Spec`, None, or a list with one a prompt
        heal, prefill, max_new_tokens, stop
            As for `healfsa.integrations.transformers.generate`.
        details : bool
            Return vLLM's `RequestOutput` objects in place of texts, with the owed bytes taken off the outputs' text.
        **options
            Everything else goes to `vllm.SamplingParams` (seed, top_p, n, ...); `temperature` is 0 unless it is given.
        """
        single = isinstance(prompts, str) or (bool(prompts) and isinstance(prompts[0], int))
        batch = [prompts] if single else list(prompts)
        grammars = list(grammar) if isinstance(grammar, (list, tuple)) else [grammar] * len(batch)
        tails = list(prefill) if isinstance(prefill, (list, tuple)) else [prefill] * len(batch)
        if not len(grammars) == len(tails) == len(batch):
            raise PromptError("as many grammars and prefills as prompts are needed", hint="give one, or one a prompt")
        cuts = [self._cut(each, heal, tail) for each, tail in zip(batch, tails)]
        budgets = [max_new_tokens + each.n_removed for each in cuts]
        params = [
            self._params(each, boundary, {"temperature": 0.0, "max_tokens": budget} | options)
            for each, boundary, budget in zip(grammars, cuts, budgets)
        ]
        inputs = [TokensPrompt(prompt_token_ids=each.input_ids or [start_id(self.engine.vocabulary)]) for each in cuts]
        found = self.llm.generate(inputs, params, use_tqdm=False)
        stops = [stop] if isinstance(stop, str) else list(stop)
        texts = [self._texts(output, boundary, stops) for output, boundary in zip(found, cuts)]
        results = found if details else texts
        return results[0] if single else results

    def _cut(self, prompt: Any, heal: str | int, prefill: Any) -> Any:
        reading = {"parse_special": True} if isinstance(prompt, (str, bytes)) else {}
        return self.engine.heal(prompt, heal, prefill, **reading)

    def _params(self, grammar: Any, boundary: Any, options: dict[str, Any]) -> Any:
        if grammar is None and not boundary.owed:
            return SamplingParams(**options)
        text = Spec.of(grammar, boundary).text()
        if self._through == "processor":
            return SamplingParams(extra_args={FIELD: text}, **options)
        return SamplingParams(
            structured_outputs=StructuredOutputsParams(json=json.dumps({SPEC_KEYWORD: text})), **options
        )

    def _texts(self, output: Any, boundary: Any, stops: list[str]) -> Any:
        for each in output.outputs:
            if each.finish_reason == "error":
                raise HealFSAError("vLLM could not serve the request", hint="its log says why")
            each.text = text_of(self.engine, boundary, each.token_ids, stops)
        texts = [each.text for each in output.outputs]
        return texts[0] if len(texts) == 1 else texts


def text_of(engine: healfsa.Engine, boundary: Any, ids: Sequence[int], stops: Sequence[str] = ()) -> str:
    """Return what token ids say behind a healed prompt."""
    stream = TextStream.behind(engine.vocabulary, boundary, stops)
    ends = set(engine.vocabulary.eos_ids)
    for token_id in ids:
        if token_id in ends or stream.finish_reason is not None:
            break
        stream.push(engine.vocabulary.bytes_of(token_id))
    stream.finish()
    return stream.text
