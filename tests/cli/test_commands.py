"""The commands, their output, and the errors that a user sees."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

import healfsa
from healfsa.cli.app import app
from healfsa.cli.errors import EXIT_CODES, exit_code
from healfsa.cli.inputs import POLICIES


@pytest.fixture(scope="module")
def tokenizer_file(tmp_path_factory) -> str:
    """A byte-level tokenizer with a few merges."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [("r", "e"), (".", "re"), ("d", "u"), ("du", "ce"), ("c", "e"), ("re", "duce"), ("t", "u")]
    words = [*alphabet, *dict.fromkeys("".join(pair) for pair in merges)]
    merges.sort(key=lambda pair: len("".join(pair)))
    tokenizer = Tokenizer(models.BPE({word: i for i, word in enumerate(words)}, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    tokenizer.save(str(path))
    return str(path)


def run(*arguments: str, code: int = 0, **options):
    result = CliRunner().invoke(app, list(arguments), **options)
    assert result.exit_code == code, result.output
    return result.output


def unboxed(text: str) -> str:
    """Return the words of an error in its box, on one line."""
    return " ".join(text.replace("│", " ").split())


def commands(root=None, *above):
    """Yield the words of every command."""
    group = root or app
    for command in group.registered_commands:
        yield (*above, command.name or command.callback.__name__.replace("_", "-"))
    for inner in group.registered_groups:
        yield from commands(inner.typer_instance, *above, inner.name)


@pytest.mark.parametrize("command", list(commands()), ids=" ".join)
def test_every_command_teaches(command):
    text = run(*command, "--help")
    assert "Usage" in text
    assert " ".join(("healfsa", *command)) in unboxed(text).partition("Options")[0].partition("Example")[2]


@pytest.mark.parametrize(("command", "option"), [("heal", "--policy"), ("generate", "--heal")])
def test_help_lists_every_policy(command, option):
    text = unboxed(run(command, "--help")).partition(option)[2]
    for policy in POLICIES:
        assert policy in text


def test_the_top_help_names_commands_and_exit_codes():
    text = run("--help")
    assert "healfsa heal" in text
    assert "Exit codes" in text


def test_version():
    assert run("--version").strip() == healfsa.__version__


def test_heal_shows_kept_owed_and_how_many_may_follow(tokenizer_file):
    text = run("heal", "x.r", "--tokenizer", tokenizer_file)
    assert "kept     'x'" in text
    assert "owed     '.r'" in text
    assert "tokens may follow" in text
    assert "'.re'" in text


def test_heal_with_a_pattern(tokenizer_file):
    text = run("heal", "x.re", "--regex", r"duce\(", "--tokenizer", tokenizer_file, "--policy", "1")
    assert "owed     '.re'" in text
    assert "next     1 of" in text, "only .re: one token is taken back, and one writes it again"


def test_heal_reads_standard_input(tokenizer_file):
    assert "owed     '\\t'" in run("heal", "-", "-t", tokenizer_file, "-p", "1", input="a\t")


def test_compile_shows_sizes_and_times(tokenizer_file):
    text = run("compile", "--regex", "[0-9]{4}-[0-9]{2}", "-t", tokenizer_file)
    for word in ("nodes", "states", "masks", "median"):
        assert word in text


@pytest.mark.parametrize("grammar", [["--choice", "yes", "--choice", "no"], ["--regex", "a|b", "--dialect", "ecma"]])
def test_compile_other_grammars(tokenizer_file, grammar):
    assert "compiled" in run("compile", *grammar, "-t", tokenizer_file)


def test_compile_a_schema_from_a_file(tokenizer_file, tmp_path):
    path = tmp_path / "schema.json"
    path.write_text('{"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}')
    assert "compiled" in run("compile", "--schema", str(path), "-t", tokenizer_file)
    assert "compiled" in run("compile", "--schema", '{"type": "boolean"}', "-t", tokenizer_file)


def test_inspect_shows_every_stage(tmp_path):
    svg, dot = tmp_path / "a.svg", tmp_path / "a.dot"
    text = run("inspect", r"(duce|turn)[a-f]*\(", "--svg", str(svg), "--dot", str(dot), "--text", "durn")
    for stage in ("syntax tree", "expression", "automaton", "accepts, for example", "the text"):
        assert stage in text
    picture = ElementTree.parse(svg).getroot()
    circles = [item for item in picture.iter() if item.get("class", "").startswith("state")]
    assert len(circles) == int(text.split("automaton (")[1].split()[0])
    assert dot.read_text().startswith("digraph")


def test_inspect_cuts_large_automata():
    assert "10 shown" in run("inspect", "[a-z]{200}", "--max-states", "10")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["inspect", "(a"], 3, "^"),
        (["inspect", r"(a)\1"], 3, "hint"),
        (["inspect", "a(?!a)a"], 3, "no text"),
        (["compile"], 2, "no grammar"),
        (["compile", "--regex", "a", "--choice", "b"], 2, "only one"),
        (["compile", "--regex", "a", "--dialect", "perl"], 2, "python, ecma"),
        (["compile", "--schema", "no/such/file.json"], 2, "No such file"),
        (["compile", "--schema", ""], 2, "the schema is empty"),
        (["compile", "--schema", "  "], 2, "the schema is empty"),
        (["compile", "--schema", "a" * 5000], 2, "no JSON text"),
        (["compile", "--schema", '{"type": "nonsense"}'], 3, "nonsense"),
        (["heal", "x", "--tokenizer", "no/such/file"], 5, "tokenizer"),
        (["heal", "x", "--policy", "most"], 2, "exact"),
        (["heal", "x", "--policy", "-1"], 2, "exact"),
        (["heal", "x", "--policy", "9" * 5000], 2, "exact"),
        (["heal", "x", "--policy", "²"], 2, "exact"),
        (["generate", "x", "--heal", "most"], 2, "exact"),
        (["generate", "x", "--temperature", "nan"], 2, "temperature"),
        (["generate", "x", "--seed", "-1"], 2, "seed"),
        (["generate", "x", "--max-tokens", "0"], 2, "max-tokens"),
        (["serve", "--heal", "most"], 2, "exact"),
        (["serve", "--unknown-fields", "most"], 2, "warn"),
        (["serve", "--dtype", "most"], 2, "bfloat16"),
        (["serve", "--tool-style", "most"], 2, "hermes"),
        (["serve", "--upstream", "most"], 2, "http"),
        (["serve", "--upstream-kind", "most"], 2, "vllm"),
        (["serve", "--api-key-file", "no/such/file"], 2, "api-key-file"),
        (["serve", "--api-key-file", os.devnull], 2, "there is no key"),
        (["serve", "--api-key", " "], 2, "empty"),
        (["serve", "-m", "a/same", "-m", "b/same"], 2, "same"),
        (["serve", "-m", "=folder"], 2, "NAME=FOLDER"),
        (["serve", "--upstream", "http://127.0.0.1:9", "-m", "a", "-m", "b"], 2, "one model"),
        (["serve", "--tokenizer", "folder"], 2, "--upstream"),
        (["serve", "--port", "99999"], 2, "port"),
        (["library", "show", "no-such"], 2, "library list"),
        (["library", "list", "no-such"], 2, "library list"),
        (["library", "test", "no-such"], 2, "library list"),
        (["library", "test", "--file", "no/such/file"], 2, "file"),
        (["heal", "abc", "--prefill", "x"], 6, "prefill"),
        (["inspect", "a", "--svg", "no/such/folder/a.svg"], 1, "no/such/folder"),
        (["inspect"], 2, ""),
        (["nonsense"], 2, ""),
    ],
)
def test_errors_have_no_traceback(tokenizer_file, arguments, code, said):
    if arguments[0] == "heal" and "--tokenizer" not in arguments:
        arguments = [*arguments, "-t", tokenizer_file]
    text = run(*arguments, code=code)
    assert "Traceback" not in text
    assert said in unboxed(text)


def test_a_contradiction_is_said_before_anything_is_shown(tokenizer_file):
    options = ["--regex", '"x"', "--prefill", "abc", "-t", tokenizer_file]
    text = run("heal", "abc", *options, code=6)
    assert "error" in text and "owed     " not in text and "kept" not in text


def test_the_key_of_the_environment(monkeypatch):
    from healfsa.cli.serve import _keys

    assert _keys(None, None) == ()
    for empty in ("", " "):
        monkeypatch.setenv("HEALFSA_API_KEY", empty)
        assert "HEALFSA_API_KEY" in run("serve", code=2)
    monkeypatch.setenv("HEALFSA_API_KEY", "my secret")
    assert _keys(None, None) == ("my secret",) and _keys(["other"], None) == ("other",)


def test_a_schema_file_that_is_not_utf8(tokenizer_file, tmp_path):
    path = tmp_path / "schema.json"
    path.write_bytes(b'{"const": "\xff"}')
    assert "not UTF-8: byte 11" in run("compile", "--schema", str(path), "-t", tokenizer_file, code=3)


def test_standard_input_that_is_not_utf8(tokenizer_file):
    assert "not UTF-8: byte 1" in run("heal", "-", "-t", tokenizer_file, input=b"a\xff", code=6)


@pytest.mark.parametrize(
    ("name", "said"),
    [("no/such/folder", "there is no folder"), ("./no-such", "there is no folder"), ("no-such", "HF_HUB_OFFLINE")],
)
def test_a_model_that_is_nowhere_is_said_at_once(monkeypatch, name, said):
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "is_offline_mode", lambda: True)
    start = time.perf_counter()
    assert said in run("generate", "x", "--model", name, code=1)
    assert time.perf_counter() - start < 10


@pytest.mark.model
@pytest.mark.parametrize("pattern", ["a(?=b)c", "(a"])
def test_a_wrong_grammar_is_said_before_a_model_is_loaded(monkeypatch, smollm2, pattern):
    monkeypatch.setattr(healfsa.models, "load", None)
    run("generate", "x", "--regex", pattern, code=3)


def test_more_specific_classes_decide_the_exit_code():
    assert exit_code(healfsa.EmptyLanguage("x")) == 3
    assert exit_code(healfsa.MissingExtra("transformers", "torch")) == 8
    assert exit_code(healfsa.HealFSAError("x")) == 1
    assert len({code for _, code, _ in EXIT_CODES}) == len(EXIT_CODES)


@pytest.fixture
def loaded(monkeypatch, smollm2):
    monkeypatch.setattr(healfsa.models, "load", lambda name=None, **_: smollm2)


@pytest.mark.model
def test_generate_streams_only_what_follows(loaded):
    assert run("generate", "The capital of Fra", "-n", "3").startswith("nce is Paris")
    assert run("generate", "x.re", "--regex", r"(duce|turn|place)\(").strip() in ("duce(", "turn(", "place(")
    assert run("generate", "x.re", "-c", "turn(", "--echo").strip() == "x.return("


@pytest.mark.model
def test_generate_with_a_prefill(loaded):
    text = run("generate", '{"a": 1', "--regex", r'\{"a": 1[0-9]\}', "--prefill", '{"a": 1')
    assert text.strip()[1:] == "}"


@pytest.mark.model
def test_sampling_is_repeatable(loaded):
    sample = ["generate", "Once", "-n", "6", "--temperature", "1.5", "--seed", "3"]
    assert run(*sample) == run(*sample)


def test_the_module_runs_as_a_program():
    done = subprocess.run([sys.executable, "-m", "healfsa", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == healfsa.__version__


def test_help_needs_nothing_heavy():
    code = (
        "import sys; from typer.testing import CliRunner; from healfsa.cli.app import app; "
        "CliRunner().invoke(app, ['--help']); "
        "print([name for name in ('torch', 'numba', 'transformers', 'numpy') if name in sys.modules])"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )
