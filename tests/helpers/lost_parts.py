"""What a rewritten text has lost of the old one: comments and imports."""

from __future__ import annotations

import ast
import io
import json
import os
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator

# A fresh process: tests before may have given lost names back to modules of this one.
CAN_IMPORT = """
import contextlib, importlib, json, sys
working = []
for module, name in json.load(sys.stdin):
    with contextlib.suppress(Exception):
        if name and not hasattr(importlib.import_module(module), name):
            importlib.import_module(f"{module}.{name}")
        importlib.import_module(module)
        working.append((module, name))
print(json.dumps(working))
"""


def comments(text: str) -> list[str]:
    """The comments of a text, without blanks at their ends."""
    tokens = tokenize.generate_tokens(io.StringIO(text, newline="").readline)
    return [t.string.rstrip() for t in tokens if t.type == tokenize.COMMENT]


def lost_comments(before: str, after: str) -> list[str]:
    """The comments of a text that another one has not as often."""
    there = "\n".join(comments(after))
    return [c for c, n in Counter(comments(before)).items() if there.count(c) < n]


def imported(text: str) -> Iterator[tuple[str, str, str]]:
    """The imports of a text: the module, the name in it or nothing, the bound name."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                module = "." * node.level + (node.module or "")
                yield module, alias.name, alias.asname or alias.name
        elif isinstance(node, ast.Import):
            for alias in node.names:
                bound = alias.asname or alias.name.partition(".")[0]
                yield alias.name, "", bound


def bound_in(text: str) -> Counter[str]:
    """How often a text binds each name, by imports and assignments."""
    names = Counter(bound for _, _, bound in imported(text))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names[node.id] += 1
    return names


def working(pairs: Iterable[tuple[str, str]], path: str = "") -> set[tuple[str, str]]:
    """Those of some modules and names in them that Python can import.

    `path` is a folder that Python looks for modules in, too.
    """
    done = subprocess.run(
        [sys.executable, "-c", CAN_IMPORT],
        input=json.dumps(sorted(set(pairs))),
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | ({"PYTHONPATH": path} if path else {}),
    )
    return {(m, n) for m, n in json.loads(done.stdout.splitlines()[-1])}
