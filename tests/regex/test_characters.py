"""Sets of characters over all code points: case and classes against the engines that define them; UTF-8."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import unicodedata

import pytest
from oracle import matches

from healfsa.errors import RegexSyntaxError, UnsupportedFeature
from healfsa.grammar import expression as ex
from healfsa.grammar.regex import charset, compile_pattern, to_expression
from healfsa.grammar.regex.names import every_character, python_class, search_all
from healfsa.grammar.regex.tree import Chars
from healfsa.grammar.utf8 import CHARACTER, TEXT, code_points, normal, not_text

CLASSES = [
    "k", "s", "i", "ß", "σ", "İ", "ı", "[a-z]", "[^a-z]", r"[^\W]", r"\w", r"\W", "[\u0370-\u03ff]", "µ", "\u1e9e",
    "[\U00010400-\U00010450]", "[\U00010428x]", "[^\u0130]", "ﬅ", "[\u1c80-\u1c88]", r"\d", r"[\S]", "[\u212a]", "[^k]",
    "\uab70", "[\u13a0-\u13f5]", "ῼ", "\u0345", "[\x00-\uffff]", "[\x00-\U0010ffff]", "\U0001e900", "[\u10a0-\u2d00]",
]  # fmt: skip
FLAGS = ["", "i", "ia", "a"]
ECMA = [
    ("[a-z]", "i"), ("ß", "i"), ("[θ-ω]", "i"), (r"\w", "i"), (r"[^\W]", "i"), (r"\W", "i"), ("[^k]", "i"), (r"\s", ""),
    ("[σΐ]", "i"), ("ﬅ", "i"), (r"\d", ""), (".", ""), (r"[\p{L}&&\p{ASCII}]", "v"), (r"\p{White_Space}", ""),
]  # fmt: skip


def members(pattern: str, flags: str, dialect: str = "python") -> charset.CharSet:
    node = compile_pattern(pattern, dialect, flags)
    assert isinstance(node, Chars)
    return node.members


@pytest.mark.parametrize("flags", FLAGS)
@pytest.mark.parametrize("pattern", CLASSES[::5])
def test_case_is_that_of_re(pattern, flags):
    bits = sum(getattr(re, letter.upper()) for letter in flags)
    assert members(pattern, flags) == search_all(re.compile(f"({pattern})", bits).finditer)


@pytest.mark.slow
@pytest.mark.parametrize("flags", FLAGS)
@pytest.mark.parametrize("pattern", CLASSES)
def test_case_is_that_of_re_all(pattern, flags):
    test_case_is_that_of_re(pattern, flags)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_ecma_case_is_that_of_node():
    program = r"""
const cases = JSON.parse(require('fs').readFileSync(0, 'utf8'));
console.log(JSON.stringify(cases.map(([p, f]) => {
  const pattern = new RegExp(`^(?:${p})$`, f.includes('v') ? f : f + 'u'), found = [];
  for (let c = 0; c < 0x110000; c++)
    if (!(c >= 0xd800 && c < 0xe000) && pattern.test(String.fromCodePoint(c))) found.push(c);
  return found;
})));"""
    result = subprocess.run(["node", "-e", program], input=json.dumps(ECMA), capture_output=True, text=True, check=True)
    for (pattern, flags), found in zip(ECMA, json.loads(result.stdout), strict=True):
        wanted, ours = normal((c, c) for c in found), members(pattern, flags, "ecma")
        differ = charset.union(charset.difference(wanted, ours), charset.difference(ours, wanted))
        newer = [c for low, high in differ for c in range(low, high + 1) if unicodedata.category(chr(c)) != "Cn"]
        assert not newer, (pattern, flags, newer[:5])  # what differs is newer than one of the Unicode tables


def test_classes_are_those_of_str():
    assert members(r"\d", "") == normal((ord(c), ord(c)) for c in every_character() if c.isdecimal())
    assert python_class("s", False) == normal((ord(c), ord(c)) for c in every_character() if c.isspace())


@pytest.mark.parametrize("ranges", [
    [(0, 0)], [(0x7F, 0x80)], [(0x7FF, 0x800)], [(0xD000, 0xE010)], [(0xFFFF, 0x10000)], [(0x10FFFF, 0x10FFFF)],
    [(0, 0x10FFFF)], [(0x61, 0x7A), (0xE9, 0xE9), (0x4E00, 0x9FA5), (0x1F600, 0x1F64F)], [(0xD800, 0xDFFF)], [],
])  # fmt: skip
def test_utf8(ranges):
    found = code_points(ranges)
    edges = {c + d for pair in ranges for c in pair for d in (-1, 0, 1)} | {0, 0x41, 0x20AC, 0x10400}
    for c in sorted(edges):
        if 0 <= c <= 0x10FFFF and not 0xD800 <= c <= 0xDFFF:
            assert matches(found, chr(c).encode()) == any(low <= c <= high for low, high in ranges), hex(c)


def test_utf8_is_well_formed():
    overlong, surrogate, beyond, cut = [b"\xc0\x80", b"\xe0\x80\x80"], b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82"
    for data in (*overlong, surrogate, beyond, cut, b"\x80", b"\xff"):
        assert not matches(CHARACTER, data) and not matches(TEXT, data) and not matches(not_text(ex.EMPTY), data)
    assert matches(TEXT, "aé€😀".encode()) and matches(not_text(ex.EMPTY), "é".encode())


def test_large_classes_are_shared():
    def nodes(node: ex.Expression, seen: set[int]) -> int:
        if id(node) in seen:
            return 0
        seen.add(id(node))
        below = [*getattr(node, "parts", ()), *([node.part] if isinstance(node, ex.Repeat) else [])]
        return 1 + sum(nodes(part, seen) for part in below)

    assert len(python_class("w", False)) > 700
    assert nodes(to_expression(compile_pattern(r"\w")), set()) < 1500
    assert nodes(to_expression(compile_pattern(r"\w\w+\w*")), set()) < 1500
    assert nodes(to_expression(compile_pattern(".{0,5000}")), set()) < 40
    assert nodes(to_expression(compile_pattern("(?:a{1,20}){1,20}")), set()) < 10


def test_classes_that_differ_in_ascii_share_the_rest():
    many = [(0x400 + 4 * k, 0x401 + 4 * k) for k in range(100)]
    one, two = code_points([(48, 57), *many]), code_points([(48, 49), (97, 0x300), *many])
    assert one.parts[-1] is code_points(many)
    assert all(matches(two, character.encode()) for character in "01a\x7f\x80\u0300\u0400\u0589")
    assert not any(matches(two, character.encode()) for character in "25`\u0301\u0402\u058e")


PROPERTIES = [
    r"\p{Lu}", r"\P{Lu}", r"\p{Lt}", r"[\p{Lu}]", r"[^\p{Lu}]", r"[^\P{Ll}]", r"\P{^Lu}", r"\p{Lowercase}",
    r"\p{Greek}", r"[\p{Lu}1]", r"[\P{Lu}1]", r"[^\P{Lu}1]", r"[\p{Lt}\p{Nd}]", r"[\p{Lu}K]", r"[\P{Greek}x]",
    r"[iI\p{Nd}]",
]  # fmt: skip


def assert_as_the_package(pattern):
    package = pytest.importorskip("regex")
    text = every_character()
    found = set(package.compile(pattern, package.IGNORECASE | package.VERSION0).findall(text))
    ours = {chr(c) for low, high in members(pattern, "i") for c in range(low, high + 1)} - set(
        map(chr, range(0xD800, 0xE000))
    )
    assert ours == found
    assert members(f"(?i:{pattern})", "") == members(pattern, "i")


@pytest.mark.parametrize("pattern", [r"\P{Lu}", r"[\P{Lt}1]"])
def test_properties_in_any_case_are_those_of_the_regex_package(pattern):
    assert_as_the_package(pattern)
    assert members(f"(?-i:{pattern})", "i") == members(pattern, "")


@pytest.mark.slow
@pytest.mark.parametrize("pattern", PROPERTIES)
def test_more_properties_in_any_case(pattern):
    assert_as_the_package(pattern)


def test_hints_on_properties_can_be_followed():
    for name, hint in (
        ("Script=Foo", "Greek"),
        ("Script=greek", r"\p{Script=Greek}"),
        ("gx=Lu", "gc"),
        ("gc=Foo", "Lu"),
    ):
        with pytest.raises(RegexSyntaxError) as caught:
            compile_pattern(rf"\p{{{name}}}", "ecma")
        assert hint in caught.value.hint and "Script=Script" not in caught.value.hint


@pytest.mark.parametrize(("pattern", "span"), [(r"a\U99999999", (1, 11)), (r"\\[\UFFFFFFFF]", (3, 13))])
def test_escapes_beyond_an_int(pattern, span):
    with pytest.raises(RegexSyntaxError, match="bad escape") as caught:
        compile_pattern(pattern)
    assert caught.value.span == span


@pytest.mark.parametrize(
    ("pattern", "dialect"), [("ba{300000000}", "python"), ("ba{300000000,}+", "python"), ("ba{300000000,}", "ecma")]
)
def test_rounds_beyond_counting(pattern, dialect):
    with pytest.raises(UnsupportedFeature) as caught:
        compile_pattern(pattern, dialect)
    assert caught.value.span[0] == 2
