"""Healing from the client's side: a stock server is sent ids without the tail, and a grammar that begins with it.

In: a prompt, a grammar, an engine over the server's tokenizer. Out: ids, and the text of a GBNF grammar whose every
    text begins with the owed bytes; what a server streams.
Idea: "the owed bytes, then what the grammar allows behind the prefill" is itself a grammar, and servers take grammars.
    The states of the automaton are its rules, so a prefill is simply another start rule.
Cost: one rule a state, once a grammar and prefill; grammars with very many states (counted strings, recursion) are
    refused.
Source: GBNF as llama.cpp and xgrammar read it.
Not here: the servers' own fields (see llama_server, vllm).
"""

from __future__ import annotations

import codecs
import json
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import healfsa
from healfsa.arguments import shown
from healfsa.errors import HealFSAError, PromptError
from healfsa.grammar.interop import explore

MOST_STATES = 3_000
ANYTHING = "[\\x01-\\U0010FFFF]*"
Send = Callable[[str, dict[str, Any]], Any]


def cut(engine: healfsa.Engine, prompt: Any, heal: str | int = "auto", prefill: Any = None, **reading: Any) -> Any:
    """Cut a prompt where a character begins: what is owed is a text.

    Parameters
    ----------
    engine : Engine
    prompt : str, bytes or token ids
    heal, prefill, **reading
        As for `Engine.heal`.

    Returns
    -------
    Boundary

    Raises
    ------
    PromptError
        The prompt ends inside a character.
    """
    boundary = engine.heal(prompt, heal, prefill, **reading)
    if _is_unfinished(boundary.owed):
        raise PromptError("the prompt ends inside a character", boundary.owed, hint="complete it")
    for tokens in range(boundary.n_removed + 1, boundary.n_removed + 5):  # a character has at most four bytes
        if _is_text(boundary.owed):
            return boundary
        boundary = engine.heal(prompt, tokens, prefill, **reading)
    raise PromptError("the prompt's tail is no text", boundary.owed, hint="heal with policy 'off'")


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _is_unfinished(data: bytes) -> bool:
    """Return whether bytes end inside a character."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    decoder.decode(data)
    return bool(decoder.getstate()[0])


def gbnf(engine: healfsa.Engine, grammar: Any, boundary: Any, most_states: int = MOST_STATES) -> str | None:
    """Return GBNF for the owed bytes of `boundary` and what `grammar` allows behind its prefill.

    None where anything may follow. LimitExceeded: the grammar has more states than can be sent.
    """
    if grammar is None and not boundary.owed:
        return None
    owed = _quoted(boundary.owed.decode())
    if grammar is None:
        return f"root ::= {owed} {ANYTHING}\n"
    matcher = engine.matcher(grammar, prompt=boundary)
    automaton = matcher.index.automaton
    moves = explore(automaton, most_states, matcher.state)
    numbers = {state: k for k, state in enumerate(moves)}
    rules = [f"root ::= {owed} s{numbers[matcher.state]}"]
    for state, targets in moves.items():
        ways = [f"{_class(ranges)} s{numbers[target]}" for target, ranges in targets.items()]
        rules.append(f"s{numbers[state]} ::= " + " | ".join(ways + ['""'] * automaton.is_accepting(state)))
    return "\n".join(rules) + "\n"


def _quoted(text: str) -> str:
    return '"' + "".join(map(_character, map(ord, text))) + '"'


def _class(ranges: Any) -> str:
    parts = (_character(low) if low == high else f"{_character(low)}-{_character(high)}" for low, high in ranges)
    return f"[{''.join(parts)}]"


def _character(code: int) -> str:
    if code < 0x80:
        return chr(code) if chr(code).isalnum() or code == 0x20 else f"\\x{code:02X}"
    return f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"


class Server:
    """A server over HTTP.

    Parameters
    ----------
    url : str
        Without the path.
    key : str, optional
        Sent as a bearer token.
    timeout : float
        Seconds a call may take.
    """

    def __init__(self, url: str, key: str | None = None, timeout: float = 600.0) -> None:
        if not isinstance(url, str):
            raise HealFSAError(f"the URL of a server is a text, not {shown(url)}")
        self.url = url.rstrip("/")
        self._headers = {"content-type": "application/json"} | ({"authorization": f"Bearer {key}"} if key else {})
        self._timeout = timeout

    def post(self, path: str, body: dict[str, Any]) -> Any:
        """Return the answer to a JSON body."""
        with self._open(path, body) as answer:
            return json.load(answer)

    def events(self, path: str, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield the events that a streaming answer consists of."""
        with self._open(path, body) as answer:
            for line in answer:
                data = line.decode().strip().removeprefix("data:").strip()
                if line.startswith(b"data:") and data != "[DONE]":
                    yield json.loads(data)

    def _open(self, path: str, body: dict[str, Any]) -> Any:
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), self._headers)
        try:
            return urllib.request.urlopen(request, timeout=self._timeout)
        except urllib.error.HTTPError as answer:
            said = answer.read().decode("utf-8", "replace")[:500]
            raise HealFSAError(f"{self.url}{path} answered {answer.code}: {said}") from None
        except OSError as failure:
            raise HealFSAError(f"{self.url} cannot be reached: {failure}", hint="is the server running?") from None
