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
from healfsa.integrations.loop import Loop
from healfsa.integrations.remote import Server, cut, gbnf
from healfsa.integrations.start import start_id


class LlamaServer(Loop):
    """A running llama.cpp server.

    Parameters
    ----------
    url : str
        Its address, such as ``http://127.0.0.1:8080``.
    tokenizer : Vocabulary, Engine, or anything that `Vocabulary.from_tokenizer` takes
        That of the model which the server serves.
    key : str, optional
        The server's API key.

    Notes
    -----
    Other options of `generate` and `stream` are sent along (temperature, top_k, seed, ...); `temperature` is 0 unless
    it is given. HealFSAError: the server cannot be reached, or refuses; the message holds what it said.
    """

    def __init__(self, url: str, tokenizer: Any, key: str | None = None) -> None:
        self.server = Server(url, key)
        self.engine = engine_of(tokenizer)

    def _cut(self, prompt: Any, heal: str | int, prefill: Any, **reading: Any) -> Any:
        return cut(self.engine, prompt, heal, prefill, **reading)

    def _ids(self, boundary: Any, grammar: Any, most: int, options: dict[str, Any]) -> Iterator[int]:
        prompt = boundary.input_ids or [start_id(self.engine.vocabulary)]
        body = {"prompt": prompt, "n_predict": most, "temperature": 0.0, "stream": True, "return_tokens": True}
        if (text := gbnf(self.engine, grammar, boundary)) is not None:
            body["grammar"] = text
        return (i for event in self.server.events("/completion", body | options) for i in event.get("tokens", ()))


def engine_of(tokenizer: Any) -> healfsa.Engine:
    """Return an engine over a tokenizer in any form."""
    if isinstance(tokenizer, healfsa.Engine):
        return tokenizer
    if not isinstance(tokenizer, healfsa.Vocabulary):
        tokenizer = healfsa.Vocabulary.from_tokenizer(tokenizer)
    return healfsa.Engine(tokenizer)
