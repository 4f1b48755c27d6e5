"""The healing benchmark: its examples, its interval, and one run on a small random model."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from healfsa.cli import bench_healing
from healfsa.cli.app import app
from healfsa.cli.bench_cuts import make_examples, read_examples
from healfsa.healing import heal, logprob
from healfsa.integrations.transformers import engine_for
from healfsa.integrations.transformers.reading import PathReader
from tests.integrations_toy import toy_model, toy_tokenizer


@pytest.fixture(scope="module")
def asked():
    tokenizer = toy_tokenizer()
    model = toy_model(len(tokenizer))
    return bench_healing.Contestant(engine_for(model, tokenizer), PathReader(model, [0]))


def test_made_examples_cut_a_token(asked):
    known = asked.engine.vocabulary
    found = make_examples(known, 6, repeat=False)
    assert {example.domain for example in found} == {"code", "prose"}
    assert len(found) == 12
    for example in found:
        whole = known.encode(example.prompt + example.answer.decode())
        ends = set(np.cumsum([len(known.bytes_of(token)) for token in whole]).tolist())
        length = len(example.prompt.encode())
        assert length not in ends
        assert length + len(example.answer) in ends


def test_a_file_of_examples(tmp_path):
    path = tmp_path / "cuts.jsonl"
    path.write_text(json.dumps({"domain": "de", "text": "Grüße Eigelb", "cut": 10, "b": "gelb"}) + "\n")
    (plain,) = read_examples(path, 5, repeat=False)
    assert (plain.prompt, plain.answer) == ("Grüße Ei", b"gelb")
    (twice,) = read_examples(path, 5, repeat=True)
    assert twice.prompt == "Grüße Eigelb\n\n" + plain.prompt


def test_a_damaged_file_is_a_wrong_command_line(tmp_path):
    path = tmp_path / "cuts.jsonl"
    path.write_text('{"domain": "de"}\n')
    ran = CliRunner().invoke(app, ["bench-healing", "--data", str(path), "-o", str(tmp_path)])
    assert ran.exit_code == 2
    assert "Traceback" not in ran.output


@pytest.mark.parametrize(
    ("right", "count", "low", "high"), [(5, 100, 2.15, 11.18), (0, 10, 0.0, 27.75), (10, 10, 72.25, 100.0)]
)
def test_wilson(right, count, low, high):
    share, *found = bench_healing.wilson(right, count)
    assert share == 100 * right / count
    assert found == pytest.approx([low, high], abs=0.01)


def test_exact_answers_are_the_likeliest_bytes(asked):
    """Every greedy byte is the one whose text has the highest probability."""
    known, written = asked.engine.vocabulary, b""
    healed = heal(known, "def f", "exact")
    model = PathReader(asked.reader.model, [0, *healed.keep])
    answer = asked.continuation("def f", 2)
    for byte in answer:
        chances = [logprob(known, model, healed, written + bytes([other])) for other in (byte, 32, 40, 95)]
        assert max(chances) == chances[0]
        written += bytes([byte])


def test_all_methods_keep_to_the_prompt(asked):
    for method in bench_healing.METHODS:
        assert len(asked.answer(method, "The capital of Fra", 3)) >= 3


def test_a_run_writes_table_plot_and_answers(asked, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib", reason="the plot needs the extra [bench]")
    monkeypatch.setattr(bench_healing, "contestant", lambda model, begin: asked)
    bench_healing.run(None, None, 1, True, None, tmp_path)
    lines = (tmp_path / "healing-repeat.jsonl").read_text().splitlines()
    assert [json.loads(line)["domain"] for line in lines] == ["code", "prose"]
    assert "| code | 1 |" in (tmp_path / "healing-repeat.md").read_text()
    assert "<svg" in (tmp_path / "healing-repeat.svg").read_text()
