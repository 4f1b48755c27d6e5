"""Errors of the tree as objects: what they keep when they are sent to another process or copied."""

from __future__ import annotations

import copy
import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

import healfsa
from healfsa import errors

MADE = [
    errors.HealFSAError("wrong", hint="do this"),
    errors.GrammarError("wrong"),
    errors.RegexSyntaxError("odd", "a(b", (1, 2), hint="close it"),
    errors.TextGrammarError("odd", "root ::= x\ny", 2, 1, hint="name it"),
    errors.SchemaError("odd", "#/type", "type", hint="a name"),
    errors.SchemaLoop("round", "#/$ref", "$ref"),
    errors.UnsupportedFeature("a backreference", pattern=r"(a)\1", span=(3, 5), instead="write it out", detail="why"),
    errors.EmptyLanguage("nothing", "#/a", pattern="a(?=b)c", span=(1, 6), hint="less"),
    errors.LimitExceeded("nodes", 12, 10, "load"),
    errors.VocabularyError("no ids", hint="give some"),
    errors.IncompatibleVocabulary("missing", b"\xff\x00", hint="another"),
    errors.PromptError("contradicts", b"owed", 3, hint="less"),
    errors.MatcherError("misused"),
    errors.TokenRejected("not here", 7, b"seven", hint="another"),
    errors.TokenRejected("not here", 7),
    errors.Terminated("over"),
    errors.RollbackTooFar(3, 2),
    errors.MaskShapeError("wrong shape", (1, 2), [3], hint="make it"),
    errors.MissingExtra("torch", "torch"),
]


def classes(kind: type) -> set[type]:
    return {kind}.union(*(classes(each) for each in kind.__subclasses__()))


def told(error: BaseException) -> tuple:
    return type(error), str(error), repr(error), error.args, vars(error), getattr(error, "msg", None)


def test_every_class_of_the_tree_is_here():
    tree = {kind for kind in classes(healfsa.HealFSAError) if kind.__module__ == errors.__name__}
    assert {type(error) for error in MADE} == tree


@pytest.mark.parametrize("error", MADE, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_an_error_survives_pickling(error, protocol):
    assert told(pickle.loads(pickle.dumps(error, protocol))) == told(error)


@pytest.mark.parametrize("error", MADE, ids=lambda error: type(error).__name__)
def test_an_error_survives_copying(error):
    assert told(copy.copy(error)) == told(copy.deepcopy(error)) == told(error)


def test_what_was_changed_or_noted_later_is_kept():
    error = errors.RegexSyntaxError("odd", "a(b", (1, 2))
    error.hint = "another"
    error.add_note("seen twice")
    again = pickle.loads(pickle.dumps(error))
    assert again.hint == "another" and again.__notes__ == ["seen twice"]


def test_a_worker_process_hands_its_error_back():
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        with pytest.raises(healfsa.RegexSyntaxError) as caught:
            pool.submit(healfsa.regex, "a(b").result()
        assert caught.value.span == (1, 2)
        assert pool.submit(len, "ok").result() == 2
