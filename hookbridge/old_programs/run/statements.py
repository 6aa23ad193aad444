"""Import statements of a program's own files, answered with a view of TensorFlow.

`import tensorflow as tf` becomes `tf = __hookbridge__.module("tensorflow")`, at the
same place in the file, so that tracebacks show the right lines.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import sys
from typing import Any

from hookbridge.contrib.private_modules import KERAS
from hookbridge.old_programs.reading import guards
from hookbridge.old_programs.run import views
from hookbridge.old_programs.scanning import ARGUMENTS

HELPER = "__hookbridge__"
ROOT = "tensorflow"
ROOTS = (ROOT, KERAS)
_HERE = "hookbridge.old_programs.run.statements"


class Imports:
    """Answers the import statements of one file, which may mean TensorFlow 1 (`old`).

    With `strict`, importing a name that is gone raises `ImportError`, for imports whose
    error the file catches: it has another way then. Otherwise the name raises when it
    is used.
    """

    def __init__(self, old: bool, strict: bool = False) -> None:
        self._old, self._is_strict = old, strict

    @property
    def strict(self) -> Imports:
        """The strict form, for imports whose `ImportError` the file catches."""
        return Imports(self._old, strict=True)

    def module(self, dotted: str) -> Any:
        """`import dotted as ...`."""
        return self._checked(views.find(self._old, dotted), dotted)

    def root(self, dotted: str) -> Any:
        """`import dotted`, which binds the first part."""
        self.module(dotted)
        return views.find(self._old, dotted.partition(".")[0])

    def name(self, dotted: str, name: str) -> Any:
        """`from dotted import name`."""
        module = self.module(dotted)
        try:
            value = self._checked(getattr(module, name), f"{dotted}.{name}")
            if dotted.startswith(f"{ROOT}.python") and inspect.ismodule(value):
                return views.find(self._old, f"{dotted}.{name}")
            return value
        except AttributeError as missing:
            try:
                return views.find(self._old, f"{dotted}.{name}")
            except ImportError:
                raise ImportError(
                    f"cannot import name '{name}' from '{dotted}'"
                ) from missing

    def _checked(self, value: Any, dotted: str) -> Any:
        if self._is_strict and views.is_gone(value):
            raise ModuleNotFoundError(f"No module named '{dotted}'", name=dotted)
        return value

    def star(self, dotted: str, namespace: dict[str, Any]) -> None:
        """`from dotted import *`."""
        module = views.find(self._old, dotted)
        listed = getattr(module, "__all__", None)
        names = listed or [name for name in dir(module) if not name.startswith("_")]
        for name in names:
            value = getattr(module, name, sys)
            if value is not sys:
                namespace[name] = value


# Each rewritten file imports one of these under the name `HELPER`.
old = Imports(old=True)
new = Imports(old=False)


def rewrite(tree: ast.Module, old: bool) -> ast.Module:
    """Replaces the imports of TensorFlow in a module."""
    new = replaced(tree)
    first = ast.ImportFrom(_HERE, [ast.alias("old" if old else "new", HELPER)], 0)
    place = sum(1 for _ in itertools.takewhile(_comes_first, new.body))
    new.body.insert(place, ast.copy_location(first, ast.Pass(lineno=1, col_offset=0)))
    return ast.fix_missing_locations(new)


def replaced(tree: ast.Module) -> ast.Module:
    """A tree whose imports of TensorFlow ask `HELPER`."""
    new: ast.Module = ast.fix_missing_locations(_Rewriting().visit(tree))
    return new


def _comes_first(statement: ast.stmt) -> bool:
    """Whether it must stay at the top: a docstring, or an import of `__future__`."""
    if isinstance(statement, ast.ImportFrom):
        return statement.module == "__future__"
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


class _Rewriting(ast.NodeTransformer):
    """Replaces the imports of TensorFlow in a syntax tree."""

    def __init__(self) -> None:
        self._strict = False

    def visit_Try(self, node: ast.Try) -> Any:
        """Imports whose errors are caught here are strict."""
        before = self._strict
        self._strict = before or any(
            guards.catches(handler, guards.OF_IMPORTS) for handler in node.handlers
        )
        node.body = [new for one in node.body for new in _listed(self.visit(one))]
        self._strict = before
        for part in (node.handlers, node.orelse, node.finalbody):
            part[:] = [new for one in part for new in _listed(self.visit(one))]
        return node

    def visit_Import(self, node: ast.Import) -> Any:
        """Each alias becomes a statement, in order."""
        if not any(_is_answered(alias.name) for alias in node.names):
            return node
        statements: list[ast.stmt] = []
        for alias in node.names:
            if not _is_answered(alias.name):
                statements.append(ast.Import([alias]))
                continue
            call = self._call("module" if alias.asname else "root", alias.name)
            bound = alias.asname or alias.name.partition(".")[0]
            statements.append(_bind(bound, call))
        return [ast.copy_location(m, node) for m in statements]

    def visit_ImportFrom(self, node: ast.ImportFrom) -> Any:
        """Each name becomes a statement, in order."""
        if node.level or not node.module or not _is_answered(node.module):
            return node
        statements: list[ast.stmt] = []
        for alias in node.names:
            if alias.name == "*":
                call = self._call("star", node.module)
                call.args.append(ast.Call(ast.Name("globals", ast.Load()), [], []))
                statements.append(ast.Expr(call))
            else:
                call = self._call("name", node.module, alias.name)
                statements.append(_bind(alias.asname or alias.name, call))
        return [ast.copy_location(m, node) for m in statements]

    def visit_Call(self, node: ast.Call) -> Any:
        """Translates arguments that have another name today."""
        self.generic_visit(node)
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        size: ast.expr | None = None
        for keyword in list(node.keywords):
            today = ARGUMENTS.get((method, keyword.arg or ""))
            if today:
                keyword.arg = today
            elif today is not None:
                size = keyword.value
                node.keywords.remove(keyword)
        if size is None:
            return node
        fetched = ast.Call(ast.Attribute(node, "prefetch", ast.Load()), [size], [])
        return ast.copy_location(fetched, node)

    def _call(self, method: str, *words: str) -> ast.Call:
        helper: ast.expr = ast.Name(HELPER, ast.Load())
        if self._strict:
            helper = ast.Attribute(helper, "strict", ast.Load())
        function = ast.Attribute(helper, method, ast.Load())
        return ast.Call(function, [ast.Constant(word) for word in words], [])


def _is_answered(name: str) -> bool:
    return name.partition(".")[0] in ROOTS


def _listed(nodes: Any) -> list[Any]:
    return nodes if isinstance(nodes, list) else [nodes]


def _bind(name: str, value: ast.expr) -> ast.Assign:
    return ast.Assign([ast.Name(name, ast.Store())], value)
