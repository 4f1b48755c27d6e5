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
from healfsa.integrations.remote import Server, cut, pieces
from healfsa.integrations.spec import Spec


class Client:
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
        Whether the server runs `HealFSAProcessor` (``--logits-processors``).
    """

    def __init__(self, url: str, model: str, tokenizer: Any, key: str | None = None, processor: bool = False) -> None:
        self.server = Server(url, key)
        self.engine = engine_of(tokenizer)
        self._model = model
        self._processor = processor

    def generate(self, prompts: Any, grammar: Any = None, **options: Any) -> Any:
        """Continue one prompt, or each of a list.

        Parameters
        ----------
        prompts : str, token ids, or a list of texts
        grammar : Grammar or None
            With a stock server one whose automaton has at most some thousand states.
        heal, prefill, max_new_tokens, stop
            As for `healfsa.integrations.transformers.generate`.
        **options
            Everything else is sent along (temperature, seed, top_p, ...); `temperature` is 0 unless it is given.
        """
        if isinstance(prompts, (list, tuple)) and not all(isinstance(item, int) for item in prompts):
            return [self.generate(each, grammar, **options) for each in prompts]
        return "".join(self.stream(prompts, grammar, **options))

    def stream(self, prompt: Any, grammar: Any = None, **options: Any) -> Iterator[str]:
        """Yield the continuation of one prompt in pieces."""
        heal, prefill, stop = options.pop("heal", "auto"), options.pop("prefill", None), options.pop("stop", ())
        if self._processor:
            reading = {"parse_special": True} if isinstance(prompt, (str, bytes)) else {}
            boundary = self.engine.heal(prompt, heal, prefill, least=1, **reading)
            constraint = {"vllm_xargs": {"healfsa": Spec.of(grammar, boundary).text()}}
        else:
            prepared = cut(self.engine, prompt, grammar, heal, prefill)
            boundary = prepared.boundary
            constraint = {"structured_outputs": {"grammar": prepared.grammar}} if prepared.grammar else {}
        body = {"model": self._model, "prompt": boundary.input_ids, "temperature": 0.0, "stream": True}
        body |= {"return_token_ids": True, "max_tokens": options.pop("max_new_tokens", 256) + boundary.n_removed}
        events = self.server.events("/v1/completions", body | constraint | options)
        ids = (choice.get("token_ids") or () for event in events for choice in event.get("choices", ()))
        return pieces(self.engine, boundary, ids, stop)
