"""What is slow to make and always comes out the same, on disk: Unicode classes, formats, and on request whole grammars.

In: facts that name a value, and how to make it. Out: the value, from the user's cache folder where it lies there.
Idea: an expression is written as a flat list of nodes, parts before wholes. A file's name is the digest of the facts,
    the versions of Python and of this room's sources; its content carries a checksum, and it appears by one rename, so
    several processes may write at once. A file that is damaged, cut or foreign counts as not there and is written anew.
Cost: 0.1 to 0.3 ms a file and about a microsecond a node, in place of 5 to 30 ms.
Source: own; the same rules as the vocabulary's own cache (healfsa.vocab.cache).
Not here: what is worth keeping (names.py, strings_text.py, the makers of grammars).
"""

from __future__ import annotations

import contextlib
import hashlib
import marshal
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from healfsa.disk import cache_folder, write_whole
from healfsa.grammar import expression as ex
from healfsa.grammar.utf8 import Characters

KEEP = 1024  # files; the least recently written ones go
MOST_BYTES = 4 << 20  # of one file; what is larger is not written
_MAGIC = b"healfsa grammar 1\n"
_HEAD = len(_MAGIC) + 32
_SUFFIX = ".grammar"
GRAMMARS = "HEALFSA_GRAMMAR_CACHE"


def folder() -> Path:
    """Return the folder of these files (it may not exist)."""
    return cache_folder("grammar")


def _sources() -> bytes:
    """Return a digest of everything that a value may depend on beside its facts."""
    digest = hashlib.sha256(f"{sys.hexversion} {marshal.version}".encode())
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.digest()


_SOURCES = _sources()


def path_of(*facts: object) -> Path:
    """Return where the value that `facts` name is kept."""
    name = hashlib.sha256(_SOURCES + repr(facts).encode("utf-8", "surrogatepass")).hexdigest()
    return folder() / (name + _SUFFIX)


def kept(facts: tuple, make: Callable[[], Any]) -> Any:
    """Return a value of tuples, numbers and texts: the one on disk, or what `make` returns now."""
    path = path_of(*facts)
    found = _read(path)
    if found is None:
        found = make()
        _write(path, found)
    return found


def kept_expression(facts: tuple, make: Callable[[], ex.Expression]) -> ex.Expression:
    """Return an expression: the one on disk, or what `make` returns now."""
    path = path_of(*facts)
    stored = _read(path)
    if stored is not None:
        with contextlib.suppress(LookupError, TypeError, ValueError):
            return decode(stored)
    found = make()
    encoded = encode(found)
    if encoded is not None:
        _write(path, encoded)
    return found


def keeps_grammars() -> bool:
    """Say whether whole grammars are kept: the user asks for it by `HEALFSA_GRAMMAR_CACHE=1`."""
    return os.environ.get(GRAMMARS, "0") not in ("", "0")


def _read(path: Path) -> Any:
    """Return the value in a file; None where there is no sound one."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    body = content[_HEAD:]
    if content[: len(_MAGIC)] != _MAGIC or hashlib.sha256(body).digest() != content[len(_MAGIC) : _HEAD]:
        return None
    try:
        return marshal.loads(body)
    except (ValueError, EOFError, TypeError):
        return None


def _write(path: Path, value: Any) -> None:
    """Write a value as one file that appears in one step, or not at all (a full or read-only disk is no error)."""
    try:
        body = marshal.dumps(value)
        if len(body) > MOST_BYTES:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, _MAGIC, hashlib.sha256(body).digest(), body)
        _forget_oldest(path.parent)
    except (OSError, ValueError):
        return


def _forget_oldest(place: Path) -> None:
    files = list(place.glob("*" + _SUFFIX))
    if len(files) > KEEP:
        for path in sorted(files, key=lambda file: file.stat().st_mtime)[: KEEP // 8]:
            path.unlink(missing_ok=True)


def encode(root: ex.Expression) -> tuple | None:
    """Return an expression as (nodes, rules, number of the whole), for `decode`; None where a rule is not built yet.

    A node is (kind, what it holds), parts by number; a rule is (name, number of its body).
    """
    number_of: dict[int, int] = {}
    nodes: list[tuple] = []
    rules: dict[int, tuple[int, ex.Rule]] = {}
    left: list[ex.Expression] = [root]
    bodies: list[ex.Expression] = []
    while left:
        node = left[-1]
        missing = [part for part in _parts(node) if id(part) not in number_of]
        if missing:
            left += missing
            continue
        left.pop()
        if id(node) not in number_of:
            if type(node) is ex.Ref and id(node.rule) not in rules:
                if node.rule.nullable is not None and node.rule.body is None:
                    return None
                rules[id(node.rule)] = len(rules), node.rule
                bodies.append(node.rule.resolve())
                left.insert(0, bodies[-1])
            number_of[id(node)] = len(nodes)
            nodes.append(_node(node, number_of, rules))
    named = [(rule.name, number_of[id(body)]) for (_, rule), body in zip(rules.values(), bodies, strict=True)]
    return nodes, named, number_of[id(root)]


def _parts(node: ex.Expression) -> tuple[ex.Expression, ...]:
    if isinstance(node, (ex.Concat, ex.Choice, ex.Both)) and type(node) is not Characters:
        return node.parts
    if isinstance(node, (ex.Not, ex.Repeat)):
        return (node.part,)
    if isinstance(node, ex.Members):
        return (*node.members, node.separator, *(() if node.extra is None else (node.extra,)))
    return ()


def _node(node: ex.Expression, number_of: dict[int, int], rules: dict[int, tuple[int, ex.Rule]]) -> tuple:
    kind, parts = type(node).__name__, tuple(number_of[id(part)] for part in _parts(node))
    if isinstance(node, ex.Members):
        facts = tuple(sorted(node.required)), node.extra is not None, node.least, node.most, node.ordered
        return kind, (parts, *facts)
    if isinstance(node, ex.Repeat):
        return kind, (parts[0], node.least, node.most)
    if isinstance(node, ex.Ref):
        return kind, rules[id(node.rule)][0]
    if isinstance(node, Characters):
        return kind, node.ranges
    if parts:
        return kind, parts[0] if isinstance(node, ex.Not) else parts
    names: Any = node.__slots__
    held = [getattr(node, name) for name in names]
    return kind, held[0] if held else None


def decode(stored: tuple) -> ex.Expression:
    """Return the expression that `encode` wrote down; LookupError, TypeError or ValueError for anything else."""
    nodes, named, whole = stored
    rules = [ex.Rule(name) for name, _ in named]
    values: list[ex.Expression] = []
    for kind, held in nodes:
        values.append(_DECODERS[kind](held, values, rules))
    for rule, (_, body) in zip(rules, named, strict=True):
        rule.body = values[body]
    return values[whole]


def _members(held: tuple, values: list[ex.Expression], _rules: list[ex.Rule]) -> ex.Expression:
    parts, required, more, least, most, ordered = held
    written = [values[i] for i in parts]
    extra = written.pop() if more else None
    separator = written.pop()
    return ex.Members(tuple(written), frozenset(required), separator, extra, least, most, ordered)


_DECODERS: dict[str, Callable[[Any, list[ex.Expression], list[ex.Rule]], ex.Expression]] = {
    "Nothing": lambda held, values, rules: ex.NOTHING,
    "Empty": lambda held, values, rules: ex.EMPTY,
    "Bytes": lambda held, values, rules: ex.Bytes(held),
    "Literal": lambda held, values, rules: ex.Literal(held),
    "Literals": lambda held, values, rules: ex.Literals(held),
    "Concat": lambda held, values, rules: ex.Concat(tuple([values[i] for i in held])),
    "Choice": lambda held, values, rules: ex.Choice(tuple([values[i] for i in held])),
    "Both": lambda held, values, rules: ex.Both(tuple([values[i] for i in held])),
    "Not": lambda held, values, rules: ex.Not(values[held]),
    "Repeat": lambda held, values, rules: ex.Repeat(values[held[0]], held[1], held[2]),
    "Ref": lambda held, values, rules: ex.Ref(rules[held]),
    "Special": lambda held, values, rules: ex.Special(held),
    "Members": _members,
    "Characters": lambda held, values, rules: Characters(held),
}
