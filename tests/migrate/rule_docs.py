"""Makes the documentation of the rules from the docstrings of their modules."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import textwrap
from pathlib import Path
from types import ModuleType

from hookbridge import migrate
from hookbridge.migrate import rewrites


def modules() -> dict[str, ModuleType]:
    """`{name of a rule: its module}`, in the order of the registry."""
    found = {}
    for info in pkgutil.iter_modules(rewrites.__path__, f"{rewrites.__name__}."):
        module = importlib.import_module(info.name)
        if hasattr(module, "RULE"):
            found[module.RULE.name] = module
    return {rule.name: found[rule.name] for rule in migrate.REWRITES}


def section(name: str, module: ModuleType) -> str:
    """The part of docs/migration.md about one rule."""
    # Not `__doc__`: Python 3.13 removes the indentation, which a diff needs.
    tree = ast.parse(Path(str(module.__file__)).read_text("utf-8"))
    text = (ast.get_docstring(tree, clean=False) or "").strip()
    first, diff, *after = text.split("\n\n", 2)
    lines = [f"### {name}", "", first, "", "```diff", textwrap.dedent(diff), "```", ""]
    return "\n".join([*lines, *(f"{part}\n" for part in after)])
