"""Memory: bounded by what was asked for, whatever comes in; evicted rows come back as they were."""

from __future__ import annotations

import gc
import json
import os
import random
import threading

import numpy as np
import pytest
import vocabularies

import healfsa
from healfsa.index import Index, RowPool, Tables


def resident() -> float:
    """Resident memory of this process in MB."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def tool(k: int) -> dict:
    """One of many different tool schemas."""
    return {
        "type": "object",
        "properties": {
            f"name_{k}": {"type": "string", "maxLength": 10 + k % 90},
            f"count_{k % 7}": {"type": "integer", "minimum": k},
            "mode": {"type": "string", "enum": [f"mode {k}", "off"]},
            "tags": {"type": "array", "items": {"type": "string"}},
        },
        "required": [f"name_{k}"],
    }


def walk(engine: healfsa.Engine, matcher: healfsa.Matcher, text: str, row: np.ndarray) -> list[bytes]:
    """The rows along a text."""
    rows = []
    for token in engine.vocabulary.encode(text):
        matcher.fill_bitmask(row)
        rows.append(row.tobytes())
        matcher.accept_token(token)
    return rows


@pytest.fixture(scope="module")
def vocabulary() -> healfsa.Vocabulary:
    return healfsa.Vocabulary.from_tokenizer(healfsa.models.embedded_folder() / "tokenizer.json")


def test_rows_after_eviction_are_the_same(vocabulary):
    text = '{"name_3": "abc", "count_3": 7}'
    plenty, little = healfsa.Engine(vocabulary), healfsa.Engine(vocabulary, cache_bytes=20_000)
    row = plenty.allocate_bitmask()
    expected = walk(plenty, plenty.matcher(healfsa.json_schema(tool(3))), text, row)
    index = little.compile(healfsa.json_schema(tool(3)))
    live = little.matcher(index)
    assert walk(little, live, text, row) == expected
    other = little.matcher(healfsa.json_schema(tool(4)))
    walk(little, other, '{"name_4": "abc", "count_4": 7}', row)
    assert little.row_bytes <= 20_000
    live.reset()  # a live matcher whose rows were pushed out
    assert walk(little, live, text, row) == expected


def test_one_row_too_many_for_the_pool_is_still_right():
    vocabulary = vocabularies.byte_level()
    pool = RowPool(0)
    index = Index(healfsa.regex("[ab]*").expression, vocabulary, tables=Tables(vocabulary), pool=pool)
    again = Index(healfsa.regex("[ab]*").expression, vocabulary)
    assert np.array_equal(index.row(index.start), again.row(again.start))
    assert np.array_equal(index.row(index.start), again.row(again.start))


def test_eight_threads_get_the_rows_of_one(vocabulary):
    engine, texts = healfsa.Engine(vocabulary, cache_bytes=100_000), {}
    grammars = [healfsa.json_schema(tool(k)) for k in range(4)]
    for k, grammar in enumerate(grammars):
        alone = healfsa.Engine(vocabulary)
        text = json.dumps({f"name_{k}": "some words", f"count_{k}": 7 + k, "mode": "off"})
        texts[k] = text, walk(alone, alone.matcher(grammar), text, alone.allocate_bitmask())
    failures: list[object] = []

    def work(seed: int) -> None:
        row = engine.allocate_bitmask()
        for i in range(6):
            k = (seed + i) % len(grammars)
            text, expected = texts[k]
            if walk(engine, engine.matcher(grammars[k]), text, row) != expected:
                failures.append((seed, i))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def python_objects() -> int:
    """Live objects that the garbage collector walks."""
    gc.collect()
    return len(gc.get_objects())


def wide(k: int) -> dict:
    """One of many different schemas that are many expressions each: objects in arrays in objects."""
    node: dict = {"$ref": "#/$defs/node"}
    lists = {f"key {i}": {"type": "array", "items": node, "minItems": i, "maxItems": 20 + k} for i in range(20)}
    return {**node, "$defs": {"node": {"type": "object", "properties": lists, "additionalProperties": False}}}


def test_a_compiled_grammar_is_arrays_and_not_expressions():
    """Nothing of a schema's expressions stays: the garbage collector of a server would walk them again and again."""
    engine = healfsa.Engine(vocabularies.byte_level())
    row = engine.allocate_bitmask()

    def compile_some(first: int, last: int) -> None:
        for k in range(first, last):
            engine.matcher(healfsa.json_schema(wide(k))).fill_bitmask(row)

    compile_some(0, 10)
    before = python_objects()
    compile_some(10, 50)
    assert engine.n_grammars == 50
    assert (python_objects() - before) / 40 < 60


def test_lazy_rules_keep_no_bodies():
    """Of a step with many residues only those are made that a text reaches, and none is kept as an expression."""
    engine = healfsa.Engine(vocabularies.byte_level())
    before = python_objects()
    index = engine.compile(healfsa.json_schema({"type": "integer", "multipleOf": 9_973}))
    matcher = engine.matcher(index)
    for token in engine.vocabulary.encode(str(9_973 * 123_456_789)):
        matcher.accept_token(token)
    assert matcher.is_accepting
    assert index.nbytes < 100_000
    assert python_objects() - before < 2_000


def test_grammars_are_bounded_by_number_and_bytes(monkeypatch):
    monkeypatch.setattr("healfsa.engine.engine.MOST_GRAMMARS", 20)
    engine = healfsa.Engine(vocabularies.byte_level())
    for k in range(30):
        engine.compile(healfsa.regex(f"a{{{k + 1}}}"))
    assert engine.n_grammars == 20
    small = healfsa.Engine(vocabularies.byte_level(), cache_bytes=100_000)
    for k in range(40):
        small.compile(healfsa.choice(f"{k}" * 20_000))  # its source counts too
    assert small.n_grammars <= 20


@pytest.mark.slow
def test_a_schema_of_four_fields_to_its_end(vocabulary):
    """What a usual schema takes: the process's growth on the way, and what stays in the engine."""
    fields = {
        "name": {"type": "string", "maxLength": 10},
        "age": {"type": "integer"},
        "armor": {"enum": ["leather", "chainmail", "plate"]},
        "strength": {"type": "integer"},
    }
    engine = healfsa.Engine(vocabulary)
    row = engine.allocate_bitmask()
    walk(engine, engine.matcher(healfsa.json_schema(tool(0))), '{"name_0": "ab"}', row)  # what a first walk loads
    before, rows = resident(), engine.row_bytes
    index = engine.compile(healfsa.json_schema({"type": "object", "properties": fields, "required": list(fields)}))
    walk(engine, engine.matcher(index), '{"name": "Aragorn", "age": 87, "armor": "chainmail", "strength": 18}', row)
    kept = (index.nbytes + engine.row_bytes - rows) / 1e6
    print(f"four fields: {resident() - before:.1f} MB more, {kept:.2f} MB kept")
    assert resident() - before <= 30
    assert kept <= 2


@pytest.mark.slow
def test_a_thousand_tool_schemas(vocabulary):
    engine, row = healfsa.Engine(vocabulary), None
    row = engine.allocate_bitmask()
    walk(engine, engine.matcher(healfsa.json_schema(tool(0))), '{"name_0": "ab"}', row)
    gc.collect()
    before = resident()
    for k in range(1_000):
        text = json.dumps({f"name_{k}": "some text", f"count_{k % 7}": k})
        walk(engine, engine.matcher(healfsa.json_schema(tool(k))), text, row)
    gc.collect()
    grown = resident() - before
    print(f"1,000 schemas: {grown:.0f} MB more, {engine.n_grammars} kept")
    assert grown <= 300


@pytest.mark.slow
def test_many_requests_do_not_grow(vocabulary):
    engine = healfsa.Engine(vocabulary, cache_bytes=4 << 20)
    row, sizes = engine.allocate_bitmask(), []
    for round_ in range(6):
        for k in range(120):
            grammar = healfsa.json_schema(tool(1_000 * round_ + k))
            walk(engine, engine.matcher(grammar), f'{{"name_{1_000 * round_ + k}": "some text"}}', row)
        gc.collect()
        sizes.append(resident())
    print("MB after each round:", [round(size) for size in sizes])
    assert sizes[-1] - sizes[2] <= 12


@pytest.mark.slow
def test_requests_without_end(vocabulary):
    """As many requests as HEALFSA_SOAK says, over mixed grammars, through one engine with a small cache."""
    requests, random_ = int(os.environ.get("HEALFSA_SOAK", "4000")), random.Random(1)
    engine = healfsa.Engine(vocabulary, cache_bytes=4 << 20)
    row, sizes = engine.allocate_bitmask(), []
    patterns = [r"[a-z]{1,%d}@\w+\.org", r"(?:(?!END).){0,%d}END", r"\d{1,%d}(, \d+)*", r'"([^"\\]|\\.){0,%d}"']
    for k in range(requests):
        number = random_.randrange(30) if random_.random() < 0.97 else 30 + k
        if number % 3:
            grammar = healfsa.json_schema(tool(number))
            walk(engine, engine.matcher(grammar), f'{{"name_{number}": "some text"}}', row)
        else:
            matcher = engine.matcher(healfsa.regex(patterns[number // 3 % 4] % (number + 1)))
            for _ in range(4):
                matcher.fill_bitmask(row)
                allowed = np.flatnonzero(np.unpackbits(row[0].view(np.uint8), bitorder="little"))
                matcher.accept_token(int(random_.choice(allowed)))
                if matcher.is_terminated:
                    break
        if (k + 1) % max(requests // 10, 1) == 0:
            gc.collect()
            sizes.append(resident())
    print(f"MB after each tenth of {requests:,} requests:", [round(size) for size in sizes])
    assert sizes[-1] - max(sizes[2:5]) <= 4


@pytest.mark.slow
def test_many_requests_of_one_grammar_do_not_grow(vocabulary):
    engine = healfsa.Engine(vocabulary)
    grammar, row = healfsa.json_schema(tool(5)), engine.allocate_bitmask()
    texts = [f'{{"name_5": "word {k % 50}", "count_5": {5 + k % 900}}}' for k in range(1_000)]
    for text in texts:
        walk(engine, engine.matcher(grammar), text, row)
    gc.collect()
    before = resident()
    for _ in range(10):
        for text in texts:
            walk(engine, engine.matcher(grammar), text, row)
    gc.collect()
    assert resident() - before <= 5
