"""llama.cpp's server as it is: healed and constrained completions from the client's side.

In: the server's address, the model's tokenizer, prompts, grammars. Out: what follows the prompt, whole or in pieces.
Idea: the prompt goes as ids without its tail, the tail goes as the beginning of a GBNF grammar.
Cost: that of the server; one GBNF rule a state of the grammar.
Source: llama.cpp's server, `/completion`.
Not here: the grammar's text (see remote).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import healfsa
from healfsa.integrations.remote import Cut, Server, cut, pieces


class LlamaServer:
    """A running llama.cpp server.

    Parameters
    ----------
    url : str
        Its address, such as ``http://127.0.0.1:8080``.
    tokenizer : Vocabulary, Engine, or anything that `Vocabulary.from_tokenizer` takes
        That of the model which the server serves.
    key : str, optional
        The server's API key.
    """

    def __init__(self, url: str, tokenizer: Any, key: str | None = None) -> None:
        self.server = Server(url, key)
        self.engine = engine_of(tokenizer)

    def generate(self, prompts: Any, grammar: Any = None, **options: Any) -> Any:
        """Continue one prompt, or each of a list.

        Parameters
        ----------
        prompts : str, token ids, or a list of texts
        grammar : Grammar, Index or None
        heal, prefill, max_new_tokens, stop
            As for `healfsa.integrations.transformers.generate`.
        **options
            Everything else is sent along (temperature, top_k, seed, ...); `temperature` is 0 unless it is given.

        Raises
        ------
        HealFSAError
            The server cannot be reached, or refuses; the message holds what it said.
        """
        if isinstance(prompts, (list, tuple)) and not all(isinstance(item, int) for item in prompts):
            return [self.generate(each, grammar, **options) for each in prompts]
        return "".join(self.stream(prompts, grammar, **options))

    def stream(self, prompt: Any, grammar: Any = None, **options: Any) -> Iterator[str]:
        """Yield the continuation of one prompt in pieces."""
        prepared = cut(self.engine, prompt, grammar, options.pop("heal", "auto"), options.pop("prefill", None))
        stop = options.pop("stop", ())
        body = self._body(prepared, options)
        events = self.server.events("/completion", body)
        return pieces(self.engine, prepared.boundary, (event.get("tokens", ()) for event in events), stop)

    def _body(self, prepared: Cut, options: dict[str, Any]) -> dict[str, Any]:
        budget = options.pop("max_new_tokens", 256) + prepared.boundary.n_removed
        body = {"prompt": prepared.ids, "n_predict": budget, "temperature": 0.0, "stream": True, "return_tokens": True}
        return body | ({"grammar": prepared.grammar} if prepared.grammar else {}) | options


def engine_of(tokenizer: Any) -> healfsa.Engine:
    """Return an engine over a tokenizer in any form."""
    if isinstance(tokenizer, healfsa.Engine):
        return tokenizer
    if not isinstance(tokenizer, healfsa.Vocabulary):
        tokenizer = healfsa.Vocabulary.from_tokenizer(tokenizer)
    return healfsa.Engine(tokenizer)
