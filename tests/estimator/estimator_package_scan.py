"""Finds in its source what the installed tensorflow-estimator reads from TensorFlow.

    python tests/estimator/estimator_package_scan.py

prints `hookbridge/estimator/needs.txt`.
"""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Iterator
from pathlib import Path

# Helpers of the package's own tests; no user imports them.
TEST_HELPERS = ("*_testing_utils*.py", "fake_summary_writer.py")


def package_files() -> list[Path]:
    """The package's source files, without generated and test files."""
    spec = importlib.util.find_spec("tensorflow_estimator")
    assert spec is not None and spec.submodule_search_locations
    folder = Path(next(iter(spec.submodule_search_locations))) / "python"
    return [
        path
        for path in sorted(folder.rglob("*.py"))
        if "api" not in path.relative_to(folder).parts
        and not any(path.match(pattern) for pattern in TEST_HELPERS)
    ]


def _attribute_chain(node: ast.expr) -> list[str]:
    """`a.b.c` as `["a", "b", "c"]`; empty if it does not start with a name."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return [node.id, *reversed(names)] if isinstance(node, ast.Name) else []


def _reads(tree: ast.AST) -> Iterator[tuple[str, list[str]]]:
    """Yields a module under `tensorflow`, and a chain of attributes read from it."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            if node.module.split(".")[0] == "tensorflow":
                for alias in node.names:
                    yield node.module, [alias.name]
                    names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name == "tensorflow":
                    names[alias.asname or "tensorflow"] = "tensorflow"
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            chain = _attribute_chain(node)
            if chain and chain[0] in names:
                yield names[chain[0]], chain[1:]


def scan() -> tuple[dict[str, set[str]], set[str]]:
    """Private reads as `{module: attributes}`, and public ones as dotted names."""
    private: dict[str, set[str]] = {}
    public: set[str] = set()
    for path in package_files():
        for module, chain in _reads(ast.parse(path.read_text(encoding="utf-8"))):
            if module == "tensorflow":
                public.add(".".join(chain))
            else:
                private.setdefault(module, set()).add(chain[0])
    return private, public


def _still_there(module: str, attributes: list[str]) -> list[str]:
    """The attributes of `module` that come from TensorFlow itself."""
    from hookbridge.estimator.stand_ins import STAND_INS

    row = STAND_INS.get(module)
    if row is not None and row.is_removed:
        return []
    missing = row.missing if row is not None else ()
    return [
        name
        for name in attributes
        if name not in missing
        and not ((other := STAND_INS.get(f"{module}.{name}")) and other.is_removed)
    ]


def needs() -> dict[str, list[str]]:
    """The table: private names that no stand-in has and no other row implies."""
    private = scan()[0]
    kept = {m: _still_there(m, sorted(names)) for m, names in private.items()}
    rows = [module for module, names in kept.items() if names]
    found = {}
    for module in sorted(rows):
        own = [
            name
            for name in kept[module]
            if not any(f"{row}.".startswith(f"{module}.{name}.") for row in rows)
        ]
        if own:
            found[module] = own
    return found


if __name__ == "__main__":
    for module, attributes in needs().items():
        print(f"{module}: {' '.join(attributes)}")
