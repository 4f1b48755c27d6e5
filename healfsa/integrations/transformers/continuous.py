"""transformers' continuous batching: healed and constrained requests that join and leave one running batch.

In: a model, its tokenizer, prompts, grammars. Out: what follows each prompt, whole or in pieces; a processor for
    managers of one's own.
Idea: the interface hands a processor one int32 a request and step, before the forward pass; here it is a row of a table
    of masks that lies where the logits lie, so what runs behind the forward pass is a look-up and can be captured.
Cost: one accepted token, one mask row a request and step; the table is V/8 bytes a row.
Source: transformers.generation.continuous_batching (5.24).
Not here: `model.generate` (see generation).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from threading import Lock
from typing import Any

import numpy as np
import torch
from transformers import GenerationConfig, __version__

import healfsa
from healfsa.errors import HealFSAError, PromptError
from healfsa.healing import stop_strings
from healfsa.integrations.budget import most
from healfsa.integrations.history import SequenceMask, allow_only
from healfsa.integrations.loop import Wishes, Writing, one_a_prompt
from healfsa.integrations.transformers.generation import engine_for
from healfsa.integrations.transformers.processors import as_engine
from healfsa.integrations.transformers.prompts import is_single, prepare

try:
    from transformers import ContinuousBatchingConfig
    from transformers.generation.continuous_batching.cb_logits_processors import ContinuousBatchingLogitsProcessor
except ImportError:
    raise HealFSAError(f"transformers {__version__} batches in another way", hint="5.24 or later") from None

FIELD = "healfsa"  # the request's own keyword of `add_request`
ROWS = 1024


class Constraint:
    """What one request is held to; made by `HealingBatchProcessor.constraint`, given to `add_request`.

    Attributes
    ----------
    error : HealFSAError or None
        What went wrong in this request; it was ended, the others of the batch were not harmed.
    """

    def __init__(self, engine: healfsa.Engine, matcher: Any) -> None:
        self.error: HealFSAError | None = None
        self._mask = SequenceMask(engine, matcher)
        self._ends = engine.vocabulary.eos_ids

    def __deepcopy__(self, memo: Any) -> Constraint:
        """Return this one: transformers copies requests, and a state is a function of a request's own tokens."""
        return self

    def fill(self, row: np.ndarray, ids: Sequence[int]) -> None:
        """Write what may follow `ids` into a row of a bitmask."""
        try:
            row[:] = self._mask.after(ids)[0]
        except HealFSAError as failure:
            self.error = failure
            allow_only(row, self._ends)


class HealingBatchProcessor(ContinuousBatchingLogitsProcessor):
    """Masks the requests that carry a `Constraint`; all others are left alone.

    Parameters
    ----------
    engine : Engine
        As wide as the model's scores.
    rows : int
        The most requests that get a token in one step.

    Notes
    -----
    The state of a request is what it has written, so its last token must be known when the next step is prepared:
    a manager must be made with ``use_async_batching=False``.

    Examples
    --------
    >>> manager = model.init_continuous_batching(config, ContinuousBatchingConfig(use_async_batching=False))
    ... # doctest: +SKIP
    >>> processor = HealingBatchProcessor(engine).attach(manager)  # doctest: +SKIP
    >>> manager.add_request(healed.input_ids, healfsa=processor.constraint(grammar, healed))  # doctest: +SKIP
    """

    supported_kwargs = {FIELD: Constraint}
    ignored_kwargs = ()

    def __init__(self, engine: healfsa.Engine, rows: int = ROWS) -> None:
        self._engine = as_engine(engine)
        self._host = healfsa.allocate_bitmask(rows + 1, engine.vocabulary.size)  # row 0 allows everything
        self._table = torch.from_numpy(self._host)

    def constraint(self, grammar: Any = None, healed: Any = None) -> Constraint:
        """Return what a request has to carry: `healed` is what `engine.heal` returned for its prompt."""
        return Constraint(self._engine, self._engine.matcher(grammar, prompt=healed))

    def attach(self, manager: Any) -> HealingBatchProcessor:
        """Put this processor in front of a manager's others; before the manager is started."""
        if manager.continuous_batching_config.use_async_batching:
            raise HealFSAError(
                "asynchronous batching prepares a step before the last token is known",
                hint="ContinuousBatchingConfig(use_async_batching=False)",
            )
        found = manager.logit_processor
        found.logits_processor.insert(0, self)
        found.tensors_required += 1
        found.do_processing = True
        found.supported_keys |= self.supported_kwargs
        return self

    def fill_defaults(self, int32_tensor: torch.Tensor) -> None:
        """Say that nothing is masked, and put the table where the logits will be."""
        int32_tensor.zero_()
        self._table = torch.from_numpy(self._host).to(int32_tensor.device, copy=True)

    def prepare_tensor_args(self, requests_with_new_token: list[Any]) -> torch.Tensor:
        """Return int32[requests]: the table's row of each; the rows are written here."""
        if len(requests_with_new_token) >= len(self._host):
            message = f"{len(requests_with_new_token)} requests get a token in one step"
            raise HealFSAError(message, hint="HealingBatchProcessor(engine, rows=...)")
        places = [self._place(row, request.state) for row, request in enumerate(requests_with_new_token, 1)]
        used = len(places) + 1
        self._table[:used].copy_(torch.from_numpy(self._host[:used]))
        return torch.tensor(places, dtype=torch.int32)

    def _place(self, row: int, state: Any) -> int:
        constraint = state.logit_processor_kwargs.get(FIELD)
        if constraint is None:
            return 0
        begun = state.initial_tokens[state._true_initial_tokens :] if state._true_initial_tokens else []
        constraint.fill(self._host[row], [*begun, *state.generated_tokens])
        return row

    def __call__(self, scores: torch.Tensor, tensor_arg: torch.Tensor) -> torch.Tensor:
        """Return the masked scores, float[requests, V]."""
        rows = self._table.index_select(0, tensor_arg[: scores.shape[0]].long())
        healfsa.apply_bitmask(scores, rows)
        return scores


class ContinuousGenerator:
    """Heals, constrains and generates with transformers' continuous batching.

    Parameters
    ----------
    model, tokenizer
        As for `Generator`.
    engine : Engine, optional
        Made from the tokenizer if it is not given.
    generation_config : GenerationConfig, optional
        How tokens are chosen; greedy if it is not given.
    **options
        Everything else goes to transformers' `ContinuousBatchingConfig` (num_blocks, max_batch_tokens, ...).

    Notes
    -----
    A context manager: the loop runs in a thread from `__enter__` to `__exit__`. Until then the model is the loop's own
    (transformers' forward passes are not meant to run side by side): call it inside ``with batching.manager.pause()``.

    Examples
    --------
    >>> with ContinuousGenerator(model, tokenizer) as batching:  # doctest: +SKIP
    ...     batching.generate(["The capital of Fra", "x.re"], [None, healfsa.choice("duce", "turn")])
    """

    def __init__(
        self, model: Any, tokenizer: Any, engine: healfsa.Engine | None = None, generation_config: Any = None,
        **options: Any,
    ) -> None:  # fmt: skip
        self.engine = engine_for(model, tokenizer) if engine is None else as_engine(engine)
        self._model, self._tokenizer = model, tokenizer
        self._ends = list(self.engine.vocabulary.eos_ids)
        config = generation_config or GenerationConfig(do_sample=False, eos_token_id=self._ends)
        batching = ContinuousBatchingConfig(**{"use_async_batching": False} | options)
        self.manager = model.init_continuous_batching(config, batching)
        self._processor = HealingBatchProcessor(self.engine).attach(self.manager)
        self._requests: dict[str, _Request] = {}
        self._numbers = count()
        self._lock = Lock()

    def __enter__(self) -> ContinuousGenerator:
        """Start the loop."""
        self.manager.start()
        return self

    def __exit__(self, *failure: Any) -> None:
        """Stop the loop; requests that are under way are dropped where there was a failure."""
        self.manager.stop(block=True, hard_stop=failure[0] is not None)

    def generate(
        self,
        prompts: Any,
        grammar: Any = None,
        *,
        details: bool = False,
        **wishes: Any,
    ) -> Any:
        """Continue each prompt; `heal` (any policy but exact) and the rest as for `Generator.generate`.

        Returns
        -------
        str or list of str
            With `details` `healfsa.integrations.loop.Completion` objects.
        """
        single = is_single(prompts)
        batch = [prompts] if single else list(prompts)
        going = self._add(batch, grammar, wishes)
        for _ in self._follow(dict(going)):
            pass
        done = [request.writing.completion() for request in going.values()]
        results = done if details else [each.text for each in done]
        return results[0] if single else results

    def stream(self, prompt: Any, grammar: Any = None, **wishes: Any) -> Iterator[str]:
        """Yield the continuation of one prompt in pieces; closing the iterator cancels the request."""
        going = self._add([prompt], grammar, wishes)
        return (piece for piece in self._follow(going) if piece)

    def _add(self, batch: list[Any], grammar: Any, options: dict[str, Any]) -> dict[str, _Request]:
        """Hand the prompts to the manager, if none is wrong; return what was added by its id."""
        wishes, left = Wishes.of(options)
        if left:
            raise PromptError(f"no option {sorted(left)[0]!r}", hint="what a batch shares goes to ContinuousGenerator")
        if wishes.heal == "exact":
            raise PromptError("this loop heals by masks, which do not give exact weights", hint="Generator.generate")
        grammars, tails = (
            one_a_prompt(given, len(batch), what)
            for given, what in ((grammar, "grammars"), (wishes.prefill, "prefills"))
        )
        prepared = prepare(
            self.engine, self._tokenizer, batch,
            heal=wishes.heal, prefill=tails, parse_special=wishes.parse_special, device="cpu",
        )  # fmt: skip
        vocabulary, stops, going = self.engine.vocabulary, stop_strings(wishes.stop), {}
        constraints = [self._processor.constraint(*pair) for pair in zip(grammars, prepared.boundaries)]
        for ids, boundary, constraint in zip(prepared.rows(), prepared.boundaries, constraints):
            request = _Request(constraint, Writing(vocabulary, boundary, wishes.new, stops))
            room = max(1, most(boundary, wishes.new))
            carried = {"eos_token_id": self._ends, FIELD: request.constraint}
            request_id = f"healfsa-{next(self._numbers)}"
            self._requests[request_id] = going[request_id] = request
            self.manager.add_request(ids, request_id, max_new_tokens=room, streaming=True, **carried)
        return going

    def _follow(self, going: dict[str, _Request]) -> Iterator[str]:
        """Yield pieces of text as they come, until every request has ended."""
        try:
            while going:
                for request_id, request in list(going.items()):
                    over, text = request.over, request.shown()
                    if request.failure is not None:
                        raise request.failure
                    yield text
                    if over:
                        del going[request_id]
                if going:
                    self._read()
        finally:
            for request_id in going:
                self._cancel(request_id)

    def _read(self) -> None:
        """Take one output of the manager to the request that it belongs to, whoever waits for it."""
        with self._lock:
            output = self.manager.get_result(timeout=0.1)
            if output is None and not self.manager.is_running():
                raise HealFSAError("the batching loop has ended", hint="use it inside its `with` block")
            request = self._requests.get(output.request_id) if output is not None else None
            if request is None:
                return  # nothing yet, or what is left of a request that was cancelled
            request.take(output)
            if output.is_finished():
                del self._requests[output.request_id]
            elif request.over:
                self._cancel(output.request_id)

    def _cancel(self, request_id: str) -> None:
        if self._requests.pop(request_id, None) is not None:
            self.manager.cancel_request(request_id)


class _Request:
    """A request under way."""

    def __init__(self, constraint: Constraint, writing: Writing) -> None:
        self.constraint, self.writing = constraint, writing
        self.failure: HealFSAError | None = None
        self._seen = 0
        self._text = ""

    @property
    def over(self) -> bool:
        """Whether nothing more will come."""
        return self.failure is not None or self.writing.reason is not None

    def take(self, output: Any) -> None:
        """Take what an output adds."""
        if self.constraint.error is not None:
            self.failure = self.constraint.error
        elif output.error is not None:
            self.failure = HealFSAError(f"transformers could not serve the request: {output.error}")
        fresh = output.generated_tokens[self._seen :]
        self._seen += len(fresh)
        self._text += "".join(map(self.writing.take, fresh))
        if output.is_finished():
            self._text += self.writing.end()

    def shown(self) -> str:
        """Return the text that has come since the last call."""
        text, self._text = self._text, ""
        return text
