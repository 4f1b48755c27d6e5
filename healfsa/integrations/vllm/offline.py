"""Healed and constrained batches over `vllm.LLM`.

In: an LLM, prompts, grammars. Out: what follows each prompt.
Idea: prompts go in as ids without their tails, the tails and the grammars as specs; the answers' ids come back as
    bytes, so that the owed bytes come off exactly, and stop strings are looked for behind the prompt only.
Cost: that of the unhealed call.
Not here: what the engine does with a spec (see processors, structured).
"""

from __future__ import annotations

import json
from typing import Any

from vllm import SamplingParams, TokensPrompt
from vllm.sampling_params import StructuredOutputsParams

from healfsa.errors import HealFSAError, PromptError
from healfsa.integrations.budget import most
from healfsa.integrations.loop import Wishes, Writing, as_batch, one_a_prompt, refusing
from healfsa.integrations.spec import SPEC_KEYWORD, checked
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
        if not hasattr(llm, "llm_engine"):
            raise HealFSAError(f"a vllm.LLM is needed, not {type(llm).__name__}")
        self.llm = llm
        self.engine = engine_of(llm.get_tokenizer(), llm.llm_engine.vllm_config.model_config)
        self._through = through

    def generate(
        self,
        prompts: Any,
        grammar: Any = None,
        *,
        details: bool = False,
        **options: Any,
    ) -> Any:
        """Continue each prompt.

        Parameters
        ----------
        prompts : str, token ids, or a list of them
        grammar : Grammar, description of `Spec`, None, or a list with one a prompt
        heal, prefill, max_new_tokens, stop, parse_special
            As for `healfsa.integrations.transformers.generate`.
        details : bool
            Return vLLM's `RequestOutput` objects in place of texts; the outputs' text is without the owed bytes, and
            their ids end with the budget.
        **options
            Everything else goes to `vllm.SamplingParams` (seed, top_p, n, ...); `temperature` is 0 unless it is given.
        """
        batch, single = as_batch(prompts)
        grammars = one_a_prompt(grammar, len(batch), "grammars")
        wishes, left = Wishes.of(options)
        tails = one_a_prompt(wishes.prefill, len(batch), "prefills")
        cuts = [wishes.cut(self.engine.heal, each, tail) for each, tail in zip(batch, tails)]
        with refusing(left):
            params = [
                self._params(each, cut, {"temperature": 0.0, "max_tokens": max(1, most(cut, wishes.new))} | left)
                for each, cut in zip(grammars, cuts)
            ]
        inputs = [TokensPrompt(prompt_token_ids=each.input_ids or [start_id(self.engine.vocabulary)]) for each in cuts]
        found = self.llm.generate(inputs, params, use_tqdm=False)
        texts = [self._texts(output, cut, wishes) for output, cut in zip(found, cuts)]
        results = found if details else texts
        return results[0] if single else results

    def _params(self, grammar: Any, boundary: Any, options: dict[str, Any]) -> Any:
        if grammar is None and not boundary.owed:
            return SamplingParams(**options)
        text = checked(self.engine, grammar, boundary)
        if self._through == "processor":
            return SamplingParams(extra_args={FIELD: text}, **options)
        return SamplingParams(
            structured_outputs=StructuredOutputsParams(json=json.dumps({SPEC_KEYWORD: text})), **options
        )

    def _texts(self, output: Any, boundary: Any, wishes: Wishes) -> Any:
        for each in output.outputs:
            if each.finish_reason == "error":
                raise HealFSAError("vLLM could not serve the request", hint="its log says why")
            done = Writing(self.engine.vocabulary, boundary, wishes.new, wishes.stop).completion(each.token_ids)
            each.text = done.text
            if done.finish_reason != "eos":
                each.token_ids = list(done.token_ids)
                each.finish_reason = "length" if done.finish_reason == "length" else "stop"
        texts = [each.text for each in output.outputs]
        return texts[0] if len(texts) == 1 else texts
