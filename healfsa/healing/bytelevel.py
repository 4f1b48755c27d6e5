"""The model read byte by byte: exact distributions of the next byte, and probabilities of texts.

In: a vocabulary, a prompt, a model. Out: `ByteReader` with `next_byte_logprobs` and `push`; `logprob`.
Idea: a text so far is a prompt like any other, so each byte is the covers' tree again; the paths of one byte's tree are
    mostly those of the byte before, whose rows are remembered, and what is certain becomes trunk.
Cost: a byte costs the model what is new in the tree, mostly one path; the tree itself as in `cover.py`.
Source: ByteSampler's and genlm-bytes' streams; the code is our own.
Not here: generation by tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from healfsa.arguments import as_bytes, shown, whole
from healfsa.errors import PromptError
from healfsa.healing.appending import extend
from healfsa.healing.boundary import Boundary, heal
from healfsa.healing.cover import CoverTree, covers
from healfsa.healing.sampling import draw, shape
from healfsa.healing.search import as_model, search_all
from healfsa.healing.weights import Allowed, Model, Weighed, log_sum, weigh

if TYPE_CHECKING:
    from collections.abc import Sequence

    from healfsa.vocab import Vocabulary

END = 256  # the label of the text's end among the next bytes
KEEP = 256  # rows that are remembered

AllowedBehind = Callable[[bytes], Allowed]


class ByteReader:
    """A text that grows byte by byte under the model's own distribution over texts.

    Parameters
    ----------
    vocabulary : Vocabulary
    model : callable
        As in `healfsa.healing.weights`; its paths always stand behind the ids of `boundary.keep` as it was in the
        beginning.
    prompt : str, bytes, ids or Boundary
        What is given; a boundary of any policy.
    over : "canonical" or "all"
        See `covers`.
    grammar : callable, optional
        ``grammar(written)`` returns what is allowed behind the bytes written so far (`Allowed`).
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        model: Model,
        prompt: str | bytes | Sequence[int] | Boundary,
        *,
        over: str = "canonical",
        grammar: AllowedBehind | None = None,
    ) -> None:
        if over not in ("canonical", "all"):
            raise PromptError(f"covers are over 'canonical' or 'all', not {shown(over)}")
        self.vocabulary = vocabulary
        self.boundary = prompt if isinstance(prompt, Boundary) else heal(vocabulary, prompt, "exact")
        self.written = b""
        self.over = over
        self._grammar = grammar
        self._model = as_model(model)
        self._rows: dict[tuple[int, ...], np.ndarray] = {}
        self._trunk: tuple[int, ...] = ()
        self._owed = self.boundary.owed
        self._now: Weighed | None = None

    def next_byte_logprobs(self) -> np.ndarray:
        """Return np.float64[257]: log-probability of each next byte, and of the end of the text at 256."""
        with np.errstate(divide="ignore"):
            return np.log(self.weighed().next_bytes())

    def weighed(self) -> Weighed:
        """Return the weighed tree of what may follow now."""
        if self._now is None:
            cut = Boundary((*self.boundary.keep, *self._trunk), self._owed)
            allowed = self._grammar(self.written) if self._grammar is not None else None
            if self.over == "all":
                tree, rows, _ = search_all(self.vocabulary, cut, self._ask)
            else:
                tree = covers(self.vocabulary, cut, self.over)
                rows = self._ask(tree.paths)
            self._now = weigh(self.vocabulary, tree, rows, allowed)
        return self._now

    def push(self, data: bytes | int) -> ByteReader:
        """Go on with a byte, or several; return the reader itself."""
        byte = whole(data)
        if byte is not None and not 0 <= byte < 256:
            raise PromptError(f"a byte is a number from 0 to 255, not {byte}")
        more = as_bytes("what follows", data, PromptError) if byte is None else bytes([byte])
        self.written += more
        self._owed += more
        self._now = None
        if self.over == "canonical":
            self._settle()
        return self

    def sample(
        self, random: np.random.Generator, *, temperature: float = 1.0, top_k: int = 0, top_p: float = 1.0
    ) -> int:
        """Draw the next byte (or `END`) and go on with it; the parameters act on bytes."""
        with np.errstate(divide="ignore"):
            chances = shape(self.next_byte_logprobs(), temperature, top_k, top_p)
        label = int(draw(chances, random, 1)[0])
        if label != END:
            self.push(label)
        return label

    def generate(self, random: np.random.Generator, most: int, **parameters: Any) -> Iterator[int]:
        """Yield bytes until the text ends or there are `most`."""
        for _ in range(most):
            label = self.sample(random, **parameters)
            if label == END:
                return
            yield label

    def _ask(self, paths: list[tuple[int, ...]]) -> np.ndarray:
        """Return the model's rows, asking only for what is new."""
        whole = [(*self._trunk, *path) for path in paths]
        new = [path for path in dict.fromkeys(whole) if path not in self._rows]
        if new:
            self._rows.update(zip(new, np.asarray(self._model(new)), strict=True))
        rows = np.stack([self._rows[path] for path in whole])
        while len(self._rows) > max(KEEP, 2 * len(whole)):
            self._rows.pop(next(iter(self._rows)))
        return rows

    def _settle(self) -> None:
        """Move what no continuation can change into the trunk."""
        keep = (*self.boundary.keep, *self._trunk)
        later = extend(self.vocabulary, keep, self._owed)
        self._trunk = later.keep[len(self.boundary.keep) :]
        self._owed = later.owed


def logprob(
    vocabulary: Vocabulary,
    model: Model,
    prompt: str | bytes | Sequence[int] | Boundary,
    text: str | bytes,
    *,
    over: str = "canonical",
    whole: bool = False,
    share: float = 1e-6,
) -> float:
    """Return the log-probability that `text` follows the prompt, whatever the tokens.

    Parameters
    ----------
    vocabulary : Vocabulary
    model : callable
        As in `healfsa.healing.weights`, its paths behind the kept ids of the prompt.
    prompt : str, bytes, ids or Boundary
    text : str or bytes
    over : "canonical" or "all"
        See `covers`.
    whole : bool
        Count only tokens that end exactly with the text (texts that are compared with each other and then end);
        otherwise tokens may run past its end.
    share : float
        Over "all": segmentations below this share of the whole are left out.

    Notes
    -----
    It is ``log P(prompt + text) - log P(prompt)``, both under the kept ids, where P adds up all covers.
    """
    boundary = prompt if isinstance(prompt, Boundary) else heal(vocabulary, prompt, "exact")
    model = as_model(model)
    more = text.encode() if isinstance(text, str) else as_bytes("the text", text, PromptError)
    longer = Boundary(boundary.keep, boundary.owed + more)
    given = _covered(vocabulary, model, boundary, over, share, whole=False)
    return _covered(vocabulary, model, longer, over, share, whole=whole) - given


def _covered(vocabulary: Vocabulary, model: Model, cut: Boundary, over: str, share: float, *, whole: bool) -> float:
    """Return the log-weight of all covers of a boundary."""
    if not cut.owed:
        return 0.0
    tree, rows = _asked(vocabulary, model, cut, over, share)
    found = weigh(vocabulary, tree, rows)
    return log_sum(found.nodes[tree.covered == len(cut.owed)]) if whole else found.log_covered


def _asked(
    vocabulary: Vocabulary, model: Model, cut: Boundary, over: str, share: float
) -> tuple[CoverTree, np.ndarray]:
    if over == "all":
        return search_all(vocabulary, cut, model, share=share)[:2]
    if over != "canonical":
        raise PromptError(f"covers are over 'canonical' or 'all', not {over!r}")
    tree = covers(vocabulary, cut, over)
    return tree, np.asarray(model(tree.paths))
