"""Import statements of a program's own files, answered with a view of TensorFlow.

`import tensorflow as tf` becomes `tf = __hookbridge__.module("tensorflow")`, at the
same place in the file, so that tracebacks show the right lines.
"""

from __future__ import annotations

import ast
import itertools
import sys
from typing import Any

from hookbridge.run import views

HELPER = "__hookbridge__"
ROOT = "tensorflow"
_HERE = "hookbridge.run.statements"


class Imports:
    """Answers the import statements of one file.

    Args:
      old: whether `tensorflow` in it means TensorFlow 1.
    """

    def __init__(self, old: bool) -> None:
        self._old = old

    def module(self, dotted: str) -> Any:
        """`import dotted as ...`."""
        return views.find(self._old, dotted)

    def root(self, dotted: str) -> Any:
        """`import dotted`, which binds the first part."""
        views.find(self._old, dotted)
        return views.find(self._old, ROOT)

    def name(self, dotted: str, name: str) -> Any:
        """`from dotted import name`."""
        module = views.find(self._old, dotted)
        try:
            return getattr(module, name)
        except AttributeError as missing:
            try:
                return views.find(self._old, f"{dotted}.{name}")
            except ImportError:
                raise ImportError(
                    f"cannot import name '{name}' from '{dotted}'"
                ) from missing

    def star(self, dotted: str, namespace: dict[str, Any]) -> None:
        """`from dotted import *`."""
        module = views.find(self._old, dotted)
        listed = getattr(module, "__all__", None)
        names = listed or [name for name in dir(module) if not name.startswith("_")]
        for name in names:
            value = getattr(module, name, sys)
            if value is not sys:
                namespace[name] = value


# What the files of a program import under the name `HELPER`.
old = Imports(old=True)
new = Imports(old=False)


def rewrite(tree: ast.Module, old: bool) -> ast.Module:
    """Replaces the imports of TensorFlow in a module.

    Args:
      tree: the module's syntax tree.
      old: whether it means TensorFlow 1.
    """
    made: ast.Module = _Rewriting().visit(tree)
    first = ast.ImportFrom(_HERE, [ast.alias("old" if old else "new", HELPER)], 0)
    place = sum(1 for _ in itertools.takewhile(_comes_first, made.body))
    made.body.insert(place, ast.copy_location(first, ast.Pass(lineno=1, col_offset=0)))
    return ast.fix_missing_locations(made)


def _comes_first(statement: ast.stmt) -> bool:
    """Whether Python wants it at the top: the docstring, and imports of __future__."""
    if isinstance(statement, ast.ImportFrom):
        return statement.module == "__future__"
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


class _Rewriting(ast.NodeTransformer):
    """Replaces the imports of TensorFlow in a syntax tree."""

    def visit_Import(self, node: ast.Import) -> Any:
        """Each alias becomes a statement, in order."""
        if not any(_is_tensorflow(alias.name) for alias in node.names):
            return node
        made: list[ast.stmt] = []
        for alias in node.names:
            if not _is_tensorflow(alias.name):
                made.append(ast.Import([alias]))
            elif alias.asname:
                made.append(_bind(alias.asname, _call("module", alias.name)))
            else:
                made.append(_bind(ROOT, _call("root", alias.name)))
        return [ast.copy_location(m, node) for m in made]

    def visit_ImportFrom(self, node: ast.ImportFrom) -> Any:
        """Each name becomes a statement, in order."""
        if node.level or not node.module or not _is_tensorflow(node.module):
            return node
        made: list[ast.stmt] = []
        for alias in node.names:
            if alias.name == "*":
                call = _call("star", node.module)
                call.args.append(ast.Call(ast.Name("globals", ast.Load()), [], []))
                made.append(ast.Expr(call))
            else:
                call = _call("name", node.module, alias.name)
                made.append(_bind(alias.asname or alias.name, call))
        return [ast.copy_location(m, node) for m in made]


def _is_tensorflow(name: str) -> bool:
    return name == ROOT or name.startswith(f"{ROOT}.")


def _call(method: str, *words: str) -> ast.Call:
    function = ast.Attribute(ast.Name(HELPER, ast.Load()), method, ast.Load())
    return ast.Call(function, [ast.Constant(word) for word in words], [])


def _bind(name: str, value: ast.expr) -> ast.Assign:
    return ast.Assign([ast.Name(name, ast.Store())], value)
