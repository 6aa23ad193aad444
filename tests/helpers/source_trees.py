"""The syntax trees of all sources, read once for all tests that look through them."""

from __future__ import annotations

import ast
import functools
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
Nodes = list[ast.AST]


def nodes_of(program: str) -> Nodes:
    """All nodes of a program."""
    return list(ast.walk(ast.parse(program)))


def is_python(text: str) -> bool:
    """Whether a text can be parsed."""
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


@functools.cache
def sources() -> dict[str, Nodes]:
    """`{path in the repository: all nodes}` of hookbridge and its adapters."""
    found = {
        file.relative_to(ROOT).as_posix(): nodes_of(file.read_text("utf-8"))
        for folder in ("adapters", "hookbridge")
        for file in sorted((ROOT / folder).rglob("*.py"))
        # hookbridge/adapters is a link.
        if not file.is_relative_to(ROOT / "hookbridge" / "adapters")
    }
    assert len(found) > 100
    return found
