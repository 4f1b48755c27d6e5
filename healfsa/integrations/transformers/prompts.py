"""Prompts of every kind, cut and padded for `model.generate`.

In: texts, bytes, token ids, chats, or a batch of them. Out: kept ids int64[batch, width] padded on the left, the
    attention mask, and each prompt's boundary.
Idea: the tokenizer's own encoding (special tokens and BOS as the model expects them), then one cut at the end.
Not here: which tokens may follow (see processors).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

import healfsa
from healfsa.arguments import shown
from healfsa.errors import PromptError
from healfsa.integrations.loop import one_a_prompt
from healfsa.integrations.start import start_id


@dataclass(frozen=True, slots=True)
class Prepared:
    """A batch that is ready for the model.

    Attributes
    ----------
    input_ids : torch.Tensor, int64[batch, width]
        The kept ids, padded on the left.
    attention_mask : torch.Tensor, int64[batch, width]
        0 on padding.
    boundaries : tuple of Boundary
        One a prompt: what was kept, what is owed.
    """

    input_ids: torch.Tensor
    attention_mask: torch.Tensor
    boundaries: tuple[Any, ...]

    def rows(self) -> list[list[int]]:
        """Return each prompt's ids without padding."""
        pairs = zip(self.input_ids, self.attention_mask, strict=True)
        return [row[keep.bool()].tolist() for row, keep in pairs]


def is_single(prompts: Any) -> bool:
    """Say whether `prompts` is one prompt: a text, bytes, a list of token ids, or one chat."""
    if isinstance(prompts, (str, bytes)):
        return True
    if isinstance(prompts, (torch.Tensor, np.ndarray)):
        return prompts.ndim == 1
    if not isinstance(prompts, Sequence):
        return True
    return len(prompts) > 0 and all(isinstance(item, Mapping) or _is_scalar(item) for item in prompts)


def _is_scalar(item: Any) -> bool:
    """Say whether an element is one id (right or wrong), not a prompt of its own."""
    return isinstance(item, (int, float, complex)) or getattr(item, "ndim", None) == 0


def prepare(
    engine: healfsa.Engine,
    tokenizer: Any,
    prompts: Sequence[Any],
    *,
    heal: str | int = "auto",
    prefill: Sequence[Any] | None = None,
    parse_special: bool = True,
    device: Any = "cpu",
) -> Prepared:
    """Encode, cut and pad `prompts`.

    Parameters
    ----------
    engine : Engine
        Made for this tokenizer.
    tokenizer : transformers fast tokenizer
        Encodes texts and renders chats.
    prompts : sequence
        Each a str, bytes, sequence of token ids, or a chat (list of {"role", "content"}).
    heal : str or int
        The healing policy.
    prefill : sequence, optional
        For each prompt the tail of it that already lies inside the grammar, or None.
    parse_special : bool
        Read spellings of special tokens in texts as those tokens; False: as text (for input that is not trusted).
    device : torch device
        Where the tensors go.

    Raises
    ------
    PromptError
        There is no prompt, or one is of no known kind, or holds nothing to start from.
    """
    if len(prompts) == 0:
        raise PromptError("there is no prompt", hint="give a text, or a list of texts")
    tails = one_a_prompt(prefill, len(prompts), "prefills")
    boundaries = []
    for prompt, tail in zip(prompts, tails, strict=True):
        source, options = read(tokenizer, prompt, parse_special)
        boundaries.append(engine.heal(source, heal, prefill=tail, **options))
    rows = [list(boundary.input_ids) or [start_id(engine.vocabulary)] for boundary in boundaries]
    pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else rows[0][0]
    ids, mask = pad_rows(rows, pad, device)
    return Prepared(ids, mask, tuple(boundaries))


def pad_rows(rows: Sequence[list[int]], pad: int, device: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Return ids and attention mask, int64[batch, width] each, padded on the left."""
    width = max(len(row) for row in rows)
    ids = torch.tensor([[pad] * (width - len(row)) + row for row in rows], dtype=torch.long, device=device)
    mask = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in rows], dtype=torch.long, device=device)
    return ids, mask


def read(tokenizer: Any, prompt: Any, parse_special: bool) -> tuple[Any, dict[str, bool]]:
    """Return what `engine.heal` takes for one prompt: text, bytes or ids, and how to encode it."""
    if isinstance(prompt, (str, bytes)):
        return prompt, {"parse_special": parse_special}
    if isinstance(prompt, (torch.Tensor, np.ndarray)):
        return prompt, {}
    if isinstance(prompt, Sequence) and any(isinstance(item, Mapping) for item in prompt):
        return chat_text(tokenizer, prompt), {"parse_special": True, "add_special_tokens": False}
    if isinstance(prompt, Sequence):
        return list(prompt), {}
    raise PromptError(f"a prompt cannot be a {type(prompt).__name__}", hint="give str, bytes, token ids or a chat")


def chat_text(tokenizer: Any, messages: Sequence[Mapping[str, Any]]) -> str:
    """Return the text of a chat; a last message of the assistant is continued, with its white space kept."""
    if not messages or not getattr(tokenizer, "chat_template", None):
        raise PromptError("this tokenizer has no chat template, or the chat is empty", hint="give the prompt as a text")
    for number, message in enumerate(messages):
        _check_message(number, message)
    continued = messages[-1].get("role") == "assistant" and isinstance(messages[-1].get("content"), str)
    turns = list(messages[:-1] if continued else messages)
    try:
        text = tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
    except Exception as failure:  # whatever the template raises: it is a program of the model's makers
        raise PromptError(
            f"the chat template refuses these messages: {str(failure).splitlines()[0] if str(failure) else failure!r}",
            hint="roles mostly alternate between user and assistant, after an optional system message",
        ) from failure
    return text + messages[-1]["content"] if continued else text


def _check_message(number: int, message: Any) -> None:
    """Refuse a message that no template could read."""
    if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
        raise PromptError(f"message {number} of the chat has no role", hint="give {'role': ..., 'content': ...}")
    content = message.get("content")
    if content is None and any(value for key, value in message.items() if key not in ("role", "content")):
        return  # a call of tools, say
    if not isinstance(content, (str, list, tuple)):
        raise PromptError(f"message {number} of the chat has no content: {shown(content)}", hint="give it a text")
