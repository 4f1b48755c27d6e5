"""Where a prompt is cut: the token ids that are kept and the bytes that are owed.

In: a vocabulary and a prompt (text, bytes or token ids). Out: `Boundary`.
Idea: a prompt that ends inside what the tokenizer would have made one token is cut back to a token boundary; the bytes
    that the kept ids no longer cover are *owed*: the next tokens must begin with them. Special tokens are walls.
Cost: encoding the prompt once, when it is not given as ids; the decision itself reads only the prompt's tail.
Source: own; the policies `one` and `n` are Lundberg and Ribeiro's token healing with a longer reach.
Not here: how far `auto` must go back (`auto.py`); what may follow (`cover.py`, the index); any model.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from healfsa.arguments import as_ids, shown, whole
from healfsa.errors import PromptError, VocabularyError
from healfsa.healing.auto import decide
from healfsa.healing.prompt import REACH, Prompt, Source, read_prompt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from healfsa.vocab import Vocabulary

Policy = str | int
POLICIES = ("off", "one", "auto", "exact")


class Later:
    """A field of ids that are copied from the prompt when they are first asked for."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = "_" + name

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return ()  # the field's default
        found = instance.__dict__[self._name]
        if isinstance(found, Part):
            found = instance.__dict__[self._name] = found.ids()
        return found

    def __set__(self, instance: Any, value: Any) -> None:
        instance.__dict__[self._name] = value if isinstance(value, (tuple, Part)) else tuple(as_ids(value))


@dataclass(frozen=True, slots=True)
class Part:
    """The first `count` ids of a prompt and some more."""

    source: Source
    count: int
    more: tuple[int, ...] = ()

    def ids(self) -> tuple[int, ...]:
        """Return them all."""
        found = self.source.first(self.count)
        return (*found, *self.more) if self.more else found

    def end(self) -> tuple[int, ...]:
        """Return the last of them."""
        near = self.source.near
        return (*near[: self.count - self.source.length + len(near)], *self.more)


@dataclass(frozen=True)
class Boundary:
    """A healed prompt.

    Attributes
    ----------
    keep : tuple[int, ...]
        Token ids for the model's input.  May be empty: a tokenizer without BOS and a prompt shorter than one token.
    owed : bytes
        Bytes of the prompt that `keep` does not cover; the tokens that are generated next must begin with them.
    n_removed : int
        How many ids at the end of `prompt_ids` were given back.  (A few canonical ids may stand in `keep` in place of
        some of them: where the given ids were not canonical, or the prompt ends inside a character.)
    prompt_ids : tuple[int, ...]
        The prompt as it was encoded (or given).  Bytes of an incomplete last character that no token can make are
        not in it; they are owed all the same.
    policy : str
        "off", "one", a number, "auto" or "exact".
    prefill : bytes
        The tail of the prompt that already lies inside the grammar: the automaton is stepped over it before the
        first mask.  Empty: the grammar begins behind the prompt.
    at_once : bool
        Whether the first token must write all owed bytes (policies "one" and 1, as healing was first described).
        Otherwise, and where they are bytes of an unfinished character, tokens that are a proper beginning of the owed
        bytes are allowed, too.
    vocabulary : str
        Fingerprint of the vocabulary whose ids these are; empty where the boundary was made by hand.
    """

    keep: tuple[int, ...] = Later()  # type: ignore[assignment]
    owed: bytes = b""
    n_removed: int = 0
    prompt_ids: tuple[int, ...] = Later()  # type: ignore[assignment]
    policy: str = "off"
    prefill: bytes = b""
    at_once: bool = False
    vocabulary: str = field(default="", repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in ("owed", "prefill"):
            if not isinstance(getattr(self, name), bytes):
                raise PromptError(f"{name} are bytes, not {shown(getattr(self, name))}")

    @property
    def end(self) -> tuple[int, ...]:
        """The last of the kept ids (all, where there are not very many), without copying the others."""
        found = self.__dict__["_keep"]
        return found.end() if isinstance(found, Part) else found[-REACH:]

    @property
    def input_ids(self) -> list[int]:
        """The kept ids as a list, ready for a model."""
        return list(self.keep)

    @property
    def removed_ids(self) -> tuple[int, ...]:
        """The ids that were given back."""
        found = self.__dict__["_prompt_ids"]
        ids = found.source.near if isinstance(found, Part) else self.prompt_ids
        return ids[len(ids) - self.n_removed :]


def heal(
    vocabulary: Vocabulary,
    prompt: str | bytes | Sequence[int],
    policy: Policy = "auto",
    *,
    prefill: str | bytes | None = None,
    parse_special: bool = False,
    add_special_tokens: bool = True,
    least: int = 0,
) -> Boundary:
    """Cut a prompt back to a token boundary that is safe under `policy`.

    Parameters
    ----------
    vocabulary : Vocabulary
        The model's vocabulary with its tokenizer.
    prompt : str, bytes or sequence of int
        Text, bytes (which may end inside a character), or token ids, of which only the tail is read again.
    policy : "auto", "exact", "off", "one" or int
        ``off`` keeps everything; ``one`` or a number n gives back that many tokens; ``auto`` gives back as few as
        possible such that no continuation can have merged across the cut; ``exact`` cuts like ``auto`` and says that
        the covers of the owed bytes are to be weighted by the model.
    prefill : str or bytes, optional
        Tail of the prompt that already lies inside the grammar; recorded, and checked to be the prompt's tail.
    parse_special : bool
        Whether the spelling of a special token in a text is that token.  By default it stays text.
    add_special_tokens : bool
        Whether the tokenizer adds its BOS (and whatever else it begins a text with) to a text.
    least : int
        Ids that are kept in any case: 1 for models that cannot begin with nothing.

    Returns
    -------
    Boundary
        The bytes of ``keep`` followed by ``owed`` are the bytes of the (normalised) prompt.

    Raises
    ------
    PromptError
        It is no prompt, it holds bytes that no token can make, `prefill` is not its tail, or `policy` is none.
    VocabularyError
        An id is not in the vocabulary, or no whole number. (Of very long prompts only the end is looked at.)
    """
    if not hasattr(vocabulary, "spellable"):
        raise VocabularyError(f"a Vocabulary is needed, not {shown(vocabulary)}")
    kind, kept = _policy(policy), whole(least)
    if kept is None or kept < 0:
        raise PromptError(f"least is a number of ids, 0 or more, not {shown(least)}")
    read, source = read_prompt(
        vocabulary,
        prompt,
        parse_special=parse_special,
        add_special_tokens=add_special_tokens,
        reach=kind + 1 if isinstance(kind, int) else 0,
    )
    inside = _prefill(vocabulary, read, prefill)
    return _cut(vocabulary, read, source, kind, inside, kept)


def as_boundary(boundary: Any) -> Boundary:
    """Return a boundary as it is; anything else is an error."""
    if isinstance(boundary, Boundary):
        return boundary
    raise PromptError(f"a healed prompt is needed, not {shown(boundary)}", hint="pass what heal returned")


def _policy(policy: Policy) -> str | int:
    """Check a policy; numbers as numbers."""
    if isinstance(policy, str):
        if policy.isdecimal() and len(policy) < 10:
            return int(policy)
        if policy in POLICIES:
            return 1 if policy == "one" else policy
    elif (number := whole(policy)) is not None and number >= 0:
        return number
    raise PromptError(
        f"no healing policy {shown(policy)}", hint="use 'auto', 'exact', 'off', 'one' or a number of tokens"
    )


def _prefill(vocabulary: Vocabulary, read: Prompt, prefill: str | bytes | None) -> bytes:
    """Check that the prefill is the prompt's tail."""
    if prefill is not None and not isinstance(prefill, (str, bytes, bytearray, memoryview)):
        raise PromptError(f"a prefill is a text or bytes, not {shown(prefill)}")
    if prefill is None or len(prefill) == 0:
        return b""
    spellings = _spellings(vocabulary, prefill) if isinstance(prefill, str) else [bytes(prefill)]
    tail = read.tail(vocabulary, max(map(len, spellings)) + 1)
    for spelling in spellings:
        if tail.endswith(spelling):
            return spelling
    hint = "pass the prompt with the prefill at its end"
    raise PromptError("the prefill is not the tail of the prompt", owed=spellings[0], hint=hint)


def _spellings(vocabulary: Vocabulary, prefill: str) -> list[bytes]:
    """Return what a prefill may be in a prompt: as it is, or as the tokenizer spells it.

    The space that some tokenizers put in front of a text is not part of the prefill, wherever the prefill stands.
    """
    try:
        bare, normal = prefill.encode(), vocabulary.normalize(prefill).encode()
    except UnicodeEncodeError as error:
        raise PromptError(f"the prefill holds a lone surrogate at character {error.start}") from None
    added = normal[1:] if vocabulary.tokenizer.dummy_prefix and normal[:1] == b" " else normal
    return [spelling for spelling in dict.fromkeys((bare, added, normal)) if spelling]


def _cut(vocabulary: Vocabulary, read: Prompt, source: Source, kind: str | int, inside: bytes, least: int) -> Boundary:
    """Give back what the policy asks for."""
    ids, far = read.ids, source.length - len(read.ids)
    more: tuple[int, ...] = ()
    if kind == "off":
        keep, size = len(ids), len(read.rest)
    elif isinstance(kind, int):
        keep, size = _back(vocabulary, read, tokens=kind - bool(read.rest))
    else:
        keep, more, size = _auto(vocabulary, read)
    least = min(least - far, len(ids))
    if keep + len(more) < least:
        keep, more, size = least, (), len(vocabulary.decode_bytes(ids[least:])) + len(read.rest)
    while more and keep < len(ids) and more[0] == ids[keep]:
        keep, more = keep + 1, more[1:]
    tail = read.tail(vocabulary, size)
    owed = tail[len(tail) - size :]
    removed, at_once = len(ids) - keep, kind == 1 and not read.rest and vocabulary.trie.find(owed) >= 0
    kept = Part(source, far + keep, more)
    whole_prompt: Any = Part(source, source.length)
    made = (kept, owed, removed, whole_prompt, str(kind), inside, at_once)
    return Boundary(*made, vocabulary=vocabulary.fingerprint)  # type: ignore[arg-type]


def _auto(vocabulary: Vocabulary, read: Prompt) -> tuple[int, tuple[int, ...], int]:
    """Return how many ids stay under `auto`, the canonical ids behind them, and how many bytes are owed."""
    found = decide(vocabulary, read)
    if found.owed <= found.begin:
        keep, covered = _back(vocabulary, read, size=found.begin)
        if covered == found.begin:
            return keep, found.kept, found.owed
    keep, covered = _back(vocabulary, read, size=found.owed)
    return keep, (), covered


def _back(vocabulary: Vocabulary, read: Prompt, *, size: int = 0, tokens: int = 0) -> tuple[int, int]:
    """Return how many ids stay without the last that cover `size` bytes or are `tokens` many, and what those cover."""
    keep, covered = len(read.ids), len(read.rest)
    while read.is_open(keep) and (covered < size or len(read.ids) - keep < tokens):
        keep -= 1
        covered += len(vocabulary.bytes_of(read.ids[keep]) or b"")
    return keep, covered
