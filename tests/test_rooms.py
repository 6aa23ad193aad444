"""Rules of the rooms that import-linter has no contract for.

Imports for types and inside functions count.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

# A room is the folder of a module; these two hold rooms and are none.
_HOUSES = ("hookbridge", "hookbridge.adapters", "hookbridge.loops")
# Circles that are still to be opened; take a line away with its circle.
_OPEN = {
    "hookbridge.adapters.parameter_server": {"run", "stops"},
    "hookbridge.loops.group_stop": {"member", "watch"},
}
Import = tuple[str, str]  # module, name in it


def modules(root: Path) -> dict[str, Path]:
    """`{module: file}` of all sources; `adapters/` by its import name."""
    found = {}
    for folder, package in (("hookbridge", "hookbridge"), ("adapters", "")):
        for path in sorted((root / folder).rglob("*.py")):
            if "adapters" in path.relative_to(root / folder).parts:
                continue  # the link
            parts = path.relative_to(root).with_suffix("").parts
            name = ".".join(parts if package else ("hookbridge", *parts))
            found[name.removesuffix(".__init__")] = path
    return found


def imports(path: Path, known: dict[str, Path]) -> list[Import]:
    """What a file imports from the package: `(module, name)`."""
    found: list[Import] = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [(alias.name, "") for alias in node.names if alias.name in known]
        elif isinstance(node, ast.ImportFrom) and node.module in known:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found.append(
                    (inner, "") if inner in known else (node.module, alias.name)
                )
    return found


@pytest.fixture(scope="module")
def graph(repo_root: Path) -> dict[str, list[Import]]:
    known = modules(repo_root)
    return {name: imports(path, known) for name, path in known.items()}


def test_no_import_circle(graph: dict[str, list[Import]]) -> None:
    left = {name: {module for module, _ in found} for name, found in graph.items()}
    while free := [name for name, needs in left.items() if not needs & left.keys()]:
        for name in free:
            del left[name]
    # What is left is in a circle or needs one: take away what nobody needs.
    while ends := [n for n in left if not any(n in needs for needs in left.values())]:
        for name in ends:
            del left[name]
    known = {f"{room}.{name}" for room, names in _OPEN.items() for name in names}
    assert left.keys() <= known, f"modules that import each other: {sorted(left)}"


def test_no_underscore_name_crosses_a_room(graph: dict[str, list[Import]]) -> None:
    found = [
        f"{importer} imports {module}.{name}"
        for importer, names in graph.items()
        for module, name in names
        if name.startswith("_") and not name.startswith("__")
        if room_of(importer) != room_of(module)
    ]
    assert not found


def room_of(module: str) -> str:
    room = module.rpartition(".")[0]
    return module if room in _HOUSES or not room else room
