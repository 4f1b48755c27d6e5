"""Log-probabilities in OpenAI's two shapes.

In: tokens with their scores. Out: the `logprobs` object of completions, the entries of chats.
Idea: a token is shown by what it writes behind the prompt; tokens that only spell the prompt's end again are left out,
    except where the prompt itself is echoed. Offsets count characters of the answer's text.
Not here: computing them (sampling).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import healfsa
from healfsa.server.job import Job, PromptScores
from healfsa.server.sampling import Choice
from healfsa.server.tail import Written


def spelled(vocabulary: healfsa.Vocabulary, token: int) -> str:
    """Return a token as text; bytes that are no text come as `bytes:\\xe2\\x80`, as OpenAI writes them."""
    data = vocabulary.bytes_of(token)
    if data is None:
        return vocabulary.name_of(token)
    return shown(data)


def shown(data: bytes) -> str:
    """Return bytes as text."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return "bytes:" + "".join(f"\\x{byte:02x}" for byte in data)


def others(vocabulary: healfsa.Vocabulary, choice: Choice) -> list[tuple[str, bytes | None, float]]:
    """Return the likeliest tokens as text, bytes and log-probability; bytes that belong to the prompt are left out."""
    found = []
    for place, (token, logprob) in enumerate(choice.top):
        data = vocabulary.bytes_of(token)
        if data is None or not choice.passed:
            found.append((spelled(vocabulary, token), data, logprob))
        else:
            data = data[choice.passed[place] :]
            found.append((shown(data), data, logprob))
    return found


class CompletionScores:
    """Collects the log-probabilities of one choice.

    Parameters
    ----------
    vocabulary : Vocabulary
    job : Job
        Whose choice it is.
    echo : bool
        Whether the prompt's tokens come first.
    text : str
        The echoed prompt.
    """

    def __init__(self, vocabulary: healfsa.Vocabulary, job: Job, echo: bool, text: str) -> None:
        self._vocabulary = vocabulary
        self._job = job
        self._echo = echo
        self._offset = 0
        self._begun = False

    def take(self, prompt: PromptScores | None, tokens: Iterable[Written]) -> dict[str, Any] | None:
        """Return the object for more tokens; None where there is none."""
        entries: list[tuple[str, Choice]] = []
        if self._echo and not self._begun and prompt is not None:
            first = self._job.ids[0]
            known = [Choice(first), *prompt.choices]
            entries += [(spelled(self._vocabulary, choice.token), choice) for choice in known]
        self._begun = True
        for token in tokens:
            whole = token.hidden and self._echo
            if token.data or not token.hidden or whole:
                text = spelled(self._vocabulary, token.choice.token) if whole else self._visible(token)
                entries.append((text, token.choice))
        return self._object(entries) if entries else None

    def _visible(self, token: Written) -> str:
        return shown(token.data) if token.data else spelled(self._vocabulary, token.choice.token)

    def _object(self, entries: list[tuple[str, Choice]]) -> dict[str, Any]:
        offsets = []
        for text, _ in entries:
            offsets.append(self._offset)
            self._offset += len(text)
        return {
            "tokens": [text for text, _ in entries],
            "token_logprobs": [choice.logprob for _, choice in entries],
            "top_logprobs": [
                {text: p for text, _, p in others(self._vocabulary, choice)} if choice.logprob is not None else None
                for _, choice in entries
            ],
            "text_offset": offsets,
        }


def chat_entries(vocabulary: healfsa.Vocabulary, tokens: Sequence[Written], n: int) -> list[dict[str, Any]]:
    """Return the entries of `logprobs.content` for tokens that write something behind the prompt."""
    found = []
    for token in tokens:
        if not token.data:
            continue
        entry = _entry(shown(token.data), token.data, token.choice.logprob)
        entry["top_logprobs"] = [_entry(*each) for each in others(vocabulary, token.choice)[:n]]
        found.append(entry)
    return found


def _entry(text: str, data: bytes | None, logprob: float | None) -> dict[str, Any]:
    return {"token": text, "logprob": logprob, "bytes": list(data) if data is not None else None}
