"""Every case of the corpus, on every machine, and against the engines that define the dialects."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys

import pytest
from regex_corpus import CASES, FAILING, MATCHING, Case, re_flags, re_matches
from regex_machines import ByAutomaton, by_oracle

import healfsa
from healfsa import RegexSyntaxError, UnsupportedFeature

PYTHON = [case for case in MATCHING if case.dialect == "python"]
ECMA = [case for case in MATCHING if case.dialect == "ecma"]
SINCE_2025 = {"same name in two alternatives"}  # newer than the engines at hand
NODE = r"""
const lines = require('readline').createInterface({ input: process.stdin });
lines.on('line', line => {
  const { p, f, m, texts } = JSON.parse(line);
  const source = m === 'full' ? `(?<![^])(?:${p})(?![^])` : m === 'prefix' ? `(?<![^])(?:${p})` : p;
  const pattern = new RegExp(source, f.includes('v') ? f : f + 'u');
  console.log(JSON.stringify(texts.map(t => pattern.test(t))));
});
"""


def build(case: Case) -> healfsa.Grammar:
    return healfsa.regex(case.pattern, case.dialect, case.flags, case.match)


def test_size_and_names():
    assert len(CASES) >= 600
    assert len({str(case) for case in CASES}) == len(CASES)
    assert all(case.accepts or case.rejects for case in MATCHING)


@pytest.mark.parametrize("case", MATCHING, ids=str)
def test_languages(case: Case):
    expression = build(case).expression
    automaton = ByAutomaton(expression)
    for text, wanted in [*((t, True) for t in case.accepts), *((t, False) for t in case.rejects)]:
        assert automaton(text) == wanted, (case.pattern, text[:60])
        assert by_oracle(expression, text) in (wanted, None), (case.pattern, text[:60])


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("case", PYTHON, ids=str)
def test_re_agrees(case: Case):
    pattern = re.compile(case.pattern, re_flags(case.flags))
    assert all(re_matches(pattern, text, case.match) for text in case.accepts)
    assert not any(re_matches(pattern, text, case.match) for text in case.rejects)


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_node_agrees():
    cases = [case for case in ECMA if case.feature != "lenient" and case.name not in SINCE_2025]
    lines = [json.dumps({"p": c.pattern, "f": c.flags, "m": c.match, "texts": [*c.accepts, *c.rejects]}) for c in cases]
    result = subprocess.run(["node", "-e", NODE], input="\n".join(lines), capture_output=True, text=True, check=True)
    for case, line in zip(cases, result.stdout.splitlines(), strict=True):
        assert json.loads(line) == [True] * len(case.accepts) + [False] * len(case.rejects), case


@pytest.mark.parametrize("case", FAILING, ids=str)
def test_errors(case: Case):
    kind = {"syntax": RegexSyntaxError, "unsupported": UnsupportedFeature}[case.error]
    with pytest.raises(kind) as caught:
        build(case)
    assert caught.value.pattern == case.pattern
    assert "^" in str(caught.value)
    if case.at is not None and sys.version_info[:2] == (3, 11):  # the places moved a little between versions of re
        assert caught.value.span[0] == case.at
    if case.span is not None:
        assert caught.value.span == case.span


@pytest.mark.parametrize("case", [c for c in FAILING if c.dialect == "python" and c.error == "syntax"], ids=str)
def test_errors_are_those_of_re(case: Case):
    with pytest.raises(re.error) as wanted:
        re.compile(case.pattern)
    with pytest.raises(RegexSyntaxError) as caught:
        build(case)
    assert caught.value.reason == wanted.value.msg
    assert caught.value.span[0] == (wanted.value.pos or 0)
