"""What `model.generate` leaves out where a callable decodes, handed on to it all the same.

In: the call of `model.generate` that is going on. Out: `LeftOut`, under the keyword of that name.
Idea: transformers asks a callable for its signature before it reads the options, and hands on those that the signature
    names beside its own. So the signature is made when it is asked for: what would be lost (a streamer), or refused
    before the loop is called (no new tokens at all, stop strings), is put under a name of ours.
Cost: a look at a few frames, once a call.
Source: transformers' `_extract_generation_mode_kwargs`; in a version without it nothing is found, and nothing changed.
Not here: the loop (see decoding).
"""

from __future__ import annotations

import inspect
import sys
from typing import Any, NamedTuple

from healfsa.errors import PromptError
from healfsa.healing import stop_strings
from healfsa.integrations.loop import budget
from healfsa.integrations.transformers.exact import counted, option
from healfsa.integrations.transformers.refusals import ONE, refuse_endings

_ASKS = "_extract_generation_mode_kwargs"
_DEEP = 12  # frames between transformers' question and the answer: those of `inspect`


class LeftOut(NamedTuple):
    """A streamer, stop strings, and whether nothing is to be written."""

    streamer: Any = None
    stops: tuple[str, ...] = ()
    nothing: bool = False


NOTHING_LEFT_OUT = LeftOut()


class Asked:
    """The `__signature__` of a loop: that of its `__call__`. Asked by `model.generate`, it hands on what is lost."""

    def __get__(self, loop: Any, owner: type) -> inspect.Signature:
        """Return the signature."""
        if loop is None:
            raise AttributeError("__signature__")  # of the class: that of its __init__
        frame: Any = sys._getframe(1)
        for _ in range(_DEEP):
            if frame is None or frame.f_code.co_name == _ASKS:
                break
            frame = frame.f_back
        if frame is not None and frame.f_locals.get("custom_generate") is loop:
            asked, caller = frame.f_locals, frame.f_back.f_locals
            streamer = asked.get("streamer")
            try:
                _hand_on(asked["self"], asked["kwargs"], caller, streamer, asked.get("assistant_model"))
            except PromptError:
                end(streamer)
                raise
        return inspect.signature(loop.__call__)


def end(streamer: Any) -> None:
    """Tell a streamer that nothing more comes, so that nobody waits for it."""
    if streamer is not None:
        streamer.end()


def _hand_on(model: Any, options: dict[str, Any], caller: dict[str, Any], streamer: Any, assistant: Any) -> None:
    """Put what is left out into the options of `model.generate`."""
    if "left_out" in options:
        return  # it was asked before: `inspect` looks several times
    if assistant is not None:
        raise own_loop()
    known = options | {"generation_config": caller.get("generation_config")}
    refuse_endings(model, known)
    if streamer is not None:
        shapes = [getattr(each, "shape", (1,)) for each in (caller.get("inputs"), options.get("input_ids"))]
        if any(counted(model, known, name) > 1 for name in ONE) or any(shape[0] > 1 for shape in shapes):
            raise PromptError("a streamer takes one sequence", hint="one prompt, one beam, one sequence of it")
    stops = option(model, known, "stop_strings", None)
    new = option(model, known, "max_new_tokens", None)
    nothing = new is not None and budget(new) == 0
    if stops is not None:
        options["stop_strings"] = None
    if nothing:
        options["max_new_tokens"] = 1
    options["left_out"] = LeftOut(streamer, stop_strings(stops or ()), nothing)


def own_loop() -> PromptError:
    """Return the error of a decoding that is neither sampling, greedy search nor beams."""
    return PromptError(
        "this decoding has a loop of its own", hint="pass a HealingLogitsProcessor in place of HealedDecoding"
    )
