"""A stock vLLM server: healed and constrained completions from the client's side.

In: the server's address, the model's tokenizer, prompts, grammars. Out: what follows the prompt, whole or in pieces.
Idea: the prompt goes as ids without its tail; the tail is the beginning of the grammar, which goes as EBNF. Needs
    nothing of ours on the server, and no vLLM here. On a server with our processor the spec goes instead, and any
    grammar.
Cost: that of the server; one EBNF rule a state of the grammar.
Source: vLLM's /v1/completions (0.12 and later).
Not here: the grammar's text (see healfsa.integrations.remote).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from healfsa.integrations.llama_server import engine_of
from healfsa.integrations.loop import Loop
from healfsa.integrations.remote import Server, cut, gbnf
from healfsa.integrations.spec import checked
from healfsa.integrations.start import start_id
from healfsa.integrations.vllm.setup import FIELD


class Client(Loop):
    """A running vLLM server.

    Parameters
    ----------
    url : str
        Its address, without ``/v1``.
    model : str
        The name under which it serves the model.
    tokenizer : Vocabulary, Engine, or anything that `Vocabulary.from_tokenizer` takes
    key : str, optional
        The server's API key.
    processor : bool
        Whether the server runs `HealFSAProcessor` (``--logits-processors``); without it a grammar's automaton can have
        at most some thousand states.

    Notes
    -----
    Other options of `generate` and `stream` are sent along (temperature, seed, top_p, ...); `temperature` is 0 unless
    it is given.
    """

    def __init__(self, url: str, model: str, tokenizer: Any, key: str | None = None, processor: bool = False) -> None:
        self.server = Server(url, key)
        self.engine = engine_of(tokenizer)
        self._model = model
        self._processor = processor

    def _cut(self, prompt: Any, heal: str | int, prefill: Any, **reading: Any) -> Any:
        if self._processor:
            return super()._cut(prompt, heal, prefill, **reading)
        return cut(self.engine, prompt, heal, prefill, **reading)

    def _ids(self, boundary: Any, grammar: Any, most: int, options: dict[str, Any]) -> Iterator[int]:
        prompt = boundary.input_ids or [start_id(self.engine.vocabulary)]
        body = {"model": self._model, "prompt": prompt, "max_tokens": most, "temperature": 0.0}
        body |= {"stream": True, "return_token_ids": True} | self._constraint(boundary, grammar)
        events = self.server.events("/v1/completions", body | options)
        return (i for event in events for choice in event.get("choices", ()) for i in choice.get("token_ids") or ())

    def _constraint(self, boundary: Any, grammar: Any) -> dict[str, Any]:
        if self._processor:
            return {"vllm_xargs": {FIELD: checked(self.engine, grammar, boundary)}}
        text = gbnf(self.engine, grammar, boundary)
        left = {"vllm_xargs": {"heal": "off"}}  # where our endpoint plugin answers, it must not heal once more
        return left if text is None else left | {"structured_outputs": {"grammar": text}}
