"""Snippets of the documents, run as they stand; a comment that is a value is compared with what was computed."""

from __future__ import annotations

import ast
import re

VALUE = re.compile(r"#\s+('.*'|\".*\"|\[.*\])$")


def run(source: str, names: dict) -> int:
    """Execute a snippet; return how many of its values were compared with the comment behind them."""
    compared = 0
    for node in ast.parse(source).body:
        said = VALUE.search(source.splitlines()[node.end_lineno - 1])
        if isinstance(node, ast.Expr) and said:
            value = repr(eval(compile(ast.Expression(node.value), "page", "eval"), names))
            assert value == said[1], value
            compared += 1
        else:
            exec(compile(ast.Module([node], []), "page", "exec"), names)
    return compared
