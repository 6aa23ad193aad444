"""Whether the installed TensorFlow has a private name, from its source.

No list of private names is kept: for another target than the installed TensorFlow
nothing is known. TensorFlow is not imported.
"""

from __future__ import annotations

import ast
import functools
import importlib.util
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from hookbridge.ground import compat
from hookbridge.old_programs.names.target import Target


def missing(name: str, target: Target) -> tuple[str, bool]:
    """The part of a name below `tensorflow` that is certainly not there, and all after.

    Empty if it is there, or if nothing is known. Attributes of classes and functions
    are not looked at. Also returns whether the module of the part is there.
    """
    installed = ".".join(map(str, compat.installed_tf_version()))
    place = _tensorflow() if target.version == installed else None
    if place is None:
        return "", False
    parts = name.split(".")[1:]
    for number, part in enumerate(parts):
        if place.is_file():
            return ("" if _has(place, part) else ".".join(parts[number:])), True
        inside = place / part
        if inside.is_dir():
            place = inside
        elif (file := inside.with_suffix(".py")).is_file():
            place = file
        else:
            is_there = any(place.glob(f"{part}.*")) or _has(place / "__init__.py", part)
            return ("" if is_there else ".".join(parts[number:])), False
    return "", False


@functools.cache
def _tensorflow() -> Path | None:
    spec = importlib.util.find_spec("tensorflow")
    places = [] if spec is None else spec.submodule_search_locations
    return next(map(Path, places or ()), None)


@functools.cache
def _has(file: Path, name: str) -> bool:
    """Whether a module has a name, or may have it."""
    if not file.is_file():
        return False
    text = file.read_text("utf-8")
    # Most names are seen at once; parsing takes a second for the longest files.
    if re.search(rf"^(?:def|class) {name}\b|^{name}\s*=", text, re.M):
        return True
    return not {name, "*", "__getattr__"}.isdisjoint(names_in(file))


@functools.cache
def names_in(file: Path) -> frozenset[str]:
    """The names that a module binds at its top level."""
    return frozenset(_bound(ast.parse(file.read_bytes()).body))


def _bound(body: Iterable[ast.AST]) -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.alias):
            yield node.asname or node.name.partition(".")[0]
        elif isinstance(node, ast.Name):
            yield node.id
        else:
            yield from _bound(ast.iter_child_nodes(node))
