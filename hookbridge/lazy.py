"""Names of a package that are imported on first use."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Callable
from typing import Any


def attach(package: dict[str, Any]) -> tuple[tuple[str, ...], Callable[[str], Any]]:
    """`__all__` and `__getattr__` (PEP 562) of a package, given its `globals()`.

    The names are those that the package imports in its block `if TYPE_CHECKING:`,
    which type checkers read too. A name is stored in the package when it is found.
    """
    own = package["__name__"]
    source = package["__loader__"].get_source(own)
    blocks = (node for node in ast.parse(source).body if isinstance(node, ast.If))
    where = {
        alias.name: node.module or ""
        for block in blocks
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }

    def getattr_(name: str) -> Any:
        if name not in where:
            raise AttributeError(
                f"module `{own}` has no attribute `{name}`; public names: "
                f"{', '.join(sorted(where))}"
            )
        is_submodule = where[name] == own
        module = importlib.import_module(
            f"{own}.{name}" if is_submodule else where[name]
        )
        package[name] = module if is_submodule else getattr(module, name)
        return package[name]

    return tuple(sorted(where)), getattr_
