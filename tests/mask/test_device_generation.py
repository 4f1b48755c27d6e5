"""Generation that lives on the device writes the same tokens as generation that asks a matcher for every mask."""

from __future__ import annotations

import os
import random

import numpy as np
import pytest
import torch
import vocabularies
from schema.random_schemas import Maker

import healfsa
from healfsa.engine.device import DeviceIndex
from healfsa.errors import GrammarError, LimitExceeded, MaskShapeError, PromptError, VocabularyError

KERNELS = os.environ.get("DEVICE_TEST_KERNELS", "numba")
DEVICE = os.environ.get("DEVICE_TEST_DEVICE", "cpu")
FEW = KERNELS == "triton" and DEVICE == "cpu"
STEPS = 8 if FEW else 24
PATTERNS = [r"\d{4}-\d{2}-\d{2}", r'\{"[a-z]{1,8}": ?(\d+|"[^"\\]*")\}', r"(foo|bar|foobar)*0?", r"[^x]{0,9}x?"]


def device_index(engine, **options):
    room = {"max_states": 1 << 15, "max_bytes": 4 << 20, "eager_states": 1500} | options
    return DeviceIndex(engine, DEVICE, kernels=KERNELS, **room)


def random_grammar(random_, engine, device):
    """A random schema that has tables, or, seldom, a pattern, or no grammar at all."""
    for attempt in range(20):
        try:
            if random_.random() < 0.15:
                return None
            if attempt > 10 or random_.random() < 0.15:
                grammar = healfsa.regex(random_.choice(PATTERNS))
            else:
                grammar = healfsa.json_schema(Maker(random_.randrange(10**6)).schema(2))
            device.add(grammar)
            return grammar
        except (GrammarError, LimitExceeded):
            continue
    return None


def random_prompt(random_, engine, grammar):
    """A prompt that is cut anywhere: inside the grammar's text, or before it; None for none."""
    kind = random_.random()
    if kind < 0.25:
        return None
    policy = random_.choice(["auto", "one", 2])
    if grammar is None or kind < 0.4:
        text = random_.choice(vocabularies.TEXT)
        return engine.heal(text[: random_.randrange(1, 60)], policy) if grammar is None else None
    text = grammar.example(random_.randrange(100))
    text = text.decode("utf-8", "ignore") if isinstance(text, bytes) else text
    prefill = text[: random_.randrange(len(text) + 1)]
    return engine.heal("so: " + prefill, policy, prefill=prefill)


def model(seed: int, batch: int, size: int, eos: int) -> torch.Tensor:
    """Logits of every step, ends becoming likelier."""
    logits = torch.randn((STEPS, batch, size), generator=torch.Generator().manual_seed(seed))
    logits[:, :, eos] += torch.linspace(-2, 6, STEPS)[:, None]
    return logits


def by_host(engine, requests, logits):
    matchers = [engine.matcher(grammar, prompt) for grammar, prompt in requests]
    bitmask, written = engine.allocate_bitmask(len(matchers)), []
    for step in logits:
        for k, matcher in enumerate(matchers):
            matcher.fill_bitmask(bitmask, k)
        scores = step.clone()
        healfsa.apply_bitmask(scores, torch.from_numpy(bitmask), vocab_size=engine.vocabulary.size)
        tokens = scores.argmax(-1).tolist()
        for matcher, token in zip(matchers, tokens, strict=True):
            if not matcher.is_terminated:
                matcher.accept_token(token)
        written.append(tokens)
    return written, [matcher.is_terminated for matcher in matchers]


def by_device(device, requests, logits):
    numbers = [device.start(grammar, prompt) for grammar, prompt in requests]
    states, written = device.states(numbers), []
    for step in logits:
        scores = step.clone().to(DEVICE)
        device.mask(scores, states)
        tokens = scores.argmax(-1)
        device.advance(states, tokens)
        written.append(tokens)
    ended = device.ended(states).tolist()
    for number in numbers:
        device.release(number)
    return torch.stack(written).tolist(), ended


def compare(batches: int, batch: int, seed: int) -> tuple[int, int]:
    """Return how many sequences were compared, and how many of them began with owed bytes."""
    vocabulary = vocabularies.byte_level()
    engine = healfsa.Engine(vocabulary)
    device, random_, owed = device_index(engine), random.Random(seed), 0
    for number in range(batches):
        requests = []
        while len(requests) < batch:
            grammar = random_grammar(random_, engine, device)
            prompt = random_prompt(random_, engine, grammar)
            requests.append((grammar, prompt))
            owed += prompt is not None and bool(prompt.owed)
        logits = model(number, batch, vocabulary.size + 3, vocabulary.eos_ids[0])
        assert by_device(device, requests, logits) == by_host(engine, requests, logits)
        for grammar, _ in requests if number % 2 else ():
            device.remove(grammar)
    return batches * batch, owed


def test_the_same_tokens():
    sequences, owed = compare(1 if FEW else 4, 6 if FEW else 16, 1)
    assert owed > sequences // 4


@pytest.mark.slow
def test_the_same_tokens_in_many_sequences():
    sequences, owed = compare(35, 16, 2)
    assert sequences >= 500 and owed > sequences // 4


@pytest.mark.skipif(FEW, reason="nothing of it is about kernels")
@pytest.mark.parametrize("name", ["toy", "inner", "missing", "sentencepiece_like"])
def test_other_vocabularies(name):
    engine, random_ = healfsa.Engine(vocabularies.ALL[name]()), random.Random(4)
    device = device_index(engine)
    patterns = {"missing": r"(the|foo){1,3} ?2024", "sentencepiece_like": r"(the|foo)?[ab]{0,5}\d"}
    grammars = [healfsa.regex(patterns.get(name, r"(ab|abc|ba|0){1,4}a?")), None]
    for number in range(6):
        requests = []
        for _ in range(8):
            grammar = random_.choice(grammars)
            text = grammar.example(random_.randrange(50)) if grammar else random_.choice(["aba", "0abc", "ab"])
            prefill = text[: random_.randrange(1, len(text) + 1)]
            try:
                prompt = engine.heal(prefill, random_.choice(["auto", "one", 3, "exact"]), prefill if grammar else None)
                engine.matcher(grammar, prompt)
            except (PromptError, VocabularyError):
                prompt = None
            requests.append((grammar, prompt))
        logits = model(number, 8, engine.vocabulary.size, engine.vocabulary.eos_ids[0])
        assert by_device(device, requests, logits) == by_host(engine, requests, logits)


def test_special_tokens_and_going_on_from_a_matcher():
    vocabulary = vocabularies.byte_level()
    engine = healfsa.Engine(vocabulary)
    device = device_index(engine)
    grammar = healfsa.lark('start: "call " <tool> /[ab]{1,3}/')
    matcher = engine.matcher(grammar)
    matcher.accept_tokens(vocabulary.encode("call "))
    states = device.states([device.resume(matcher)])
    logits = torch.zeros((1, vocabulary.size), device=DEVICE)
    device.mask(logits, states)
    tool = vocabulary.specials["<tool>"]
    assert logits.isfinite().nonzero().tolist() == [[0, tool]]
    device.advance(states, torch.tensor([tool], device=DEVICE))
    matcher.accept_token(tool)
    assert device.place_of(int(states[0])) == device.place_of(device.resume(matcher))
    device.advance(states, torch.tensor([tool], device=DEVICE))
    assert states.tolist() == [0] and device.place_of(0) == (0, 0) and device.ended(states).tolist() == [True]


def test_what_has_no_tables_or_no_room_is_refused():
    engine = healfsa.Engine(vocabularies.byte_level())
    device = device_index(engine, eager_states=50, max_states=200)
    with pytest.raises(LimitExceeded):
        device.add(healfsa.regex("a{0,90}"))
    nested = healfsa.json_schema({"type": "array"})
    with pytest.raises(LimitExceeded):
        device.start(nested)
    assert device.nbytes < 2000
    device.add(healfsa.regex("a{0,40}"))
    with pytest.raises(LimitExceeded, match="max_states="):
        for k in range(20):
            device.add(healfsa.regex(f"b{{0,{20 + k}}}"))
    other = healfsa.Engine(vocabularies.toy())
    with pytest.raises(VocabularyError):
        device.start(other.compile(healfsa.regex("a")))
    with pytest.raises(MaskShapeError):
        device.mask(torch.zeros((1, other.vocabulary.size), device=DEVICE), device.states([-1]))


def test_states_are_given_back():
    engine = healfsa.Engine(vocabularies.byte_level())
    device = device_index(engine, max_states=200)
    grammar = healfsa.regex(r"\d{4}-\d{2}-\d{2}")
    device.add(grammar)
    before = device.nbytes
    for k in range(300):
        healed = engine.heal("on 2024-1"[: 4 + k % 6], 3, prefill="2024-1"[: 1 + k % 6])
        device.release(device.start(grammar, healed))
    assert device.nbytes == before


@pytest.mark.skipif(FEW, reason="nothing of it is about kernels")
def test_a_grammar_is_removed_by_its_key():
    """Whether or not the engine still remembers the index that was added."""
    engine = healfsa.Engine(vocabularies.byte_level(), cache_bytes=1)
    device = device_index(engine)
    grammar, empty = healfsa.regex("[ab]{1,9}"), device.nbytes
    first = device.add(grammar)
    for k in range(40):
        engine.compile(healfsa.regex(f"q{{{k + 1}}}"))
    assert engine.compile(grammar) is not first
    used = device.nbytes
    device.start(grammar)
    assert device.nbytes == used
    device.resume(engine.matcher(grammar))  # another index of the same grammar
    assert device.nbytes > used
    device.remove(healfsa.regex("[ab]{1,9}"))
    assert device.nbytes == empty
    device.remove(grammar)
    states = device.states([device.start(None, engine.heal("an intermed"))])
    device.remove(None)
    with pytest.raises(MaskShapeError):
        device.states(states)
    assert device.nbytes == empty


@pytest.mark.skipif(FEW, reason="the interpreter copies what it is given")
def test_masks_and_next_states_allocate_nothing():
    """What a CUDA graph needs: the same memory in every step."""
    engine = healfsa.Engine(vocabularies.byte_level())
    device = device_index(engine)
    states = device.states([device.start(healfsa.regex(r"[ab]{2,30}"))] * 3)
    logits = torch.randn((3, engine.vocabulary.size), generator=torch.Generator().manual_seed(0)).to(DEVICE)
    tokens = torch.zeros(3, dtype=torch.int64, device=DEVICE)
    from torch.utils._python_dispatch import TorchDispatchMode

    class Listener(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    seen: list[str] = []
    with Listener():
        device.mask(logits, states, owed=True)
        device.advance(states, tokens)
    allowed = ("view", "detach", "alias", "slice", "select", "unsqueeze")
    looks = ("max", "_local_scalar_dense", "item", "ge", "numpy") if DEVICE == "cpu" else ()
    assert all(any(word in name for word in allowed + looks) for name in seen), seen
    assert np.isfinite(logits.cpu().numpy()).any()
