"""Log-probabilities in OpenAI's two shapes.

In: tokens with their scores. Out: the `logprobs` object of completions, the entries of chats.
Idea: an echoed prompt is listed in its own tokens; a token behind it is shown by what it writes there, and those that
    only spell the prompt's end again are left out. Offsets count characters of the answer's text.
Not here: computing them (sampling).
"""

from __future__ import annotations

import codecs
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
    lead : int
        How many of the prompt's ids stand in front of that text.
    """

    def __init__(self, vocabulary: healfsa.Vocabulary, job: Job, echo: bool, text: str, lead: int = 0) -> None:
        self._vocabulary = vocabulary
        self._job = job
        self._echo = echo
        self._text, self._lead = text if echo else "", lead
        self._offset = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._begun = False

    def take(self, prompt: PromptScores | None, tokens: Iterable[Written]) -> dict[str, Any] | None:
        """Return the object for more tokens; None where there is none."""
        entries: list[tuple[str, Choice, int]] = []
        if not self._begun:
            self._begun = True
            if self._echo and prompt is not None and self._job.scored:
                known = [Choice(self._job.scored[0]), *prompt.choices]
                entries += [self._known(choice) for choice in known[self._lead :]]
            self._offset = len(self._text)
        for token in tokens:
            if token.data or not token.hidden:
                entries.append((self._visible(token), token.choice, self._passed(token.data)))
        return self._object(entries) if entries else None

    def _known(self, choice: Choice) -> tuple[str, Choice, int]:
        """Return the entry of a prompt's token; names of specials count where the text spells them."""
        name, data = spelled(self._vocabulary, choice.token), self._vocabulary.bytes_of(choice.token)
        if data is None:
            data = name.encode() if self._text.startswith(name, self._offset) else b""
        elif not self._offset and data[:1] == b" " and not self._text.startswith(" "):
            data = data[1:]  # the space that some tokenizers put in front
        return name, choice, self._passed(data)

    def _passed(self, data: bytes) -> int:
        """Return where bytes begin in the text, in whole characters, and go past them."""
        offset = self._offset
        self._offset += len(self._decoder.decode(data))
        return offset

    def _visible(self, token: Written) -> str:
        return shown(token.data) if token.data else spelled(self._vocabulary, token.choice.token)

    def _object(self, entries: list[tuple[str, Choice, int]]) -> dict[str, Any]:
        return {
            "tokens": [text for text, _, _ in entries],
            "token_logprobs": [choice.logprob for _, choice, _ in entries],
            "top_logprobs": [
                {text: p for text, _, p in others(self._vocabulary, choice)} if choice.logprob is not None else None
                for _, choice, _ in entries
            ],
            "text_offset": [offset for _, _, offset in entries],
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
