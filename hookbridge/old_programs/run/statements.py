"""What is rewritten of a program's own files as they are loaded.

Import statements become calls, which `tensorflow_lookup` has, and arguments of
TensorFlow's methods get their current names. Names that other libraries removed become
calls of `restored/library_lookup`.

`import tensorflow as tf` becomes `tf = __hookbridge__.module("tensorflow")`, at the
same place in the file, so that tracebacks show the right lines. So does a call of
`importlib.import_module` with the module's name in the text.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Collection
from typing import Any

from hookbridge.contrib.private_modules import KERAS
from hookbridge.old_programs.reading.names import guards, starred
from hookbridge.old_programs.reading.names.bound_names import Names
from hookbridge.old_programs.reading.names.import_statements import (
    imports,
    loaded_module,
)
from hookbridge.old_programs.run import absent
from hookbridge.old_programs.run.restored.lookup_calls import (
    add_lookups,
    bind,
    call_of,
    global_names,
    import_by_calls,
    is_lookup,
    may_need_lookups,
    put_first,
)
from hookbridge.tf1_names import keras_arguments
from hookbridge.tf1_names.changes import BECOMES_PREFETCH
from hookbridge.tf1_names.old_values import current_mode, old_mode
from hookbridge.tf1_names.renamed_arguments import change_of, surplus
from hookbridge.tf1_names.syntax import called_function

HELPER = "__hookbridge__"
ROOTS = ("tensorflow", KERAS)
# The module that has the helper. It imports TensorFlow.
_LOOKUP = "hookbridge.old_programs.run.tensorflow_lookup"


def as_run(
    tree: ast.Module, targets_tf1: bool | None, left_out: Collection[str] = ()
) -> ast.Module:
    """Return a module as it runs: imports looked up, old arguments renamed.

    Args:
      tree: the module; it is changed.
      targets_tf1: whether it means TensorFlow 1; None for one without TensorFlow.
      left_out: imports that are left out, by their full names: a library removed these
        names, or is not installed, and nothing uses them.
    """
    if left_out:
        tree = _LeavingOut(left_out).visit(tree)
    lookup_import = add_lookups(tree)
    helpers: list[ast.stmt] = [] if lookup_import is None else [lookup_import]
    if targets_tf1 is not None:
        _name_ends_of_models(tree)
        rewriting = _Rewriting(starred.free_names(tree))
        tree = rewriting.visit(tree)
        lookup = "for_tf1" if targets_tf1 else "for_tf2"
        if rewriting.has_calls:
            helpers += [ast.ImportFrom(_LOOKUP, [ast.alias(lookup, HELPER)], 0)]
    tree = _WithoutOldModes().visit(tree)
    put_first(tree, helpers)
    return ast.fix_missing_locations(tree)


def _name_ends_of_models(tree: ast.Module) -> None:
    """Give `Model(input=, output=)` the names that its class looks for."""
    has_old_ends = keras_arguments.has_old_ends
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and has_old_ends(n)]
    if not calls:
        return
    names = Names(tree, ())
    for call in calls:
        function = names.canonical(call.func) or ""
        for keyword in call.keywords:
            if change := keras_arguments.change_of(function, keyword):
                keyword.arg = change.new or keyword.arg


def is_changed(
    source: bytes, targets_tf1: bool | None, left_out: Collection[str]
) -> bool:
    """Return whether a module may run otherwise than it is written; see `as_run`."""
    if targets_tf1 is not None or left_out:
        return True
    return may_need_lookups(source) or (b"U" in source and b"open" in source)


def with_lookups(tree: ast.Module) -> ast.Module:
    """Return a tree that looks up its imports of TensorFlow and removed names."""
    add_lookups(tree)
    new: ast.Module = ast.fix_missing_locations(_Rewriting().visit(tree))
    return new


class _WithoutOldModes(ast.NodeTransformer):
    """Opens files without the mode `U`, which Python removed."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Visit each call."""
        self.generic_visit(node)
        if (mode := old_mode(node)) is not None:
            mode.value = current_mode(str(mode.value))
        return node


class _LeavingOut(ast.NodeTransformer):
    """Leaves imports out; those of packages that are not installed are tried."""

    def __init__(self, left_out: Collection[str]) -> None:
        self._left_out = left_out

    def _visit_import(self, node: ast.Import | ast.ImportFrom) -> list[ast.stmt]:
        """Return the import of what is left, and a try for each absent package."""
        imported = list(imports(node))
        left_out = [import_ for import_ in imported if import_.full in self._left_out]
        node.names = [import_.alias for import_ in imported if import_ not in left_out]
        statements: list[ast.stmt] = [node] if node.names else []
        for import_ in left_out:
            root = import_.full.partition(".")[0]
            if absent.is_absent(root):
                alone = copy.copy(node)
                alone.names = [import_.alias]
                statements.append(absent.try_import(alone, root))
        return statements or [ast.copy_location(ast.Pass(), node)]

    visit_Import = visit_ImportFrom = _visit_import


class _Rewriting(ast.NodeTransformer):
    """Replaces the imports of TensorFlow in a syntax tree, and old argument names."""

    def __init__(self, free: Collection[str] = ()) -> None:
        self.has_calls = False  # whether an import was replaced
        self._free = free  # the names that a starred import has to give
        self._strict = False
        self._tries_names = False

    def visit_Try(self, node: ast.Try) -> Any:
        """Make imports and names strict whose errors are caught here."""
        before = self._strict, self._tries_names
        self._strict = self._strict or any(
            guards.catches(handler, guards.OF_IMPORTS) for handler in node.handlers
        )
        self._tries_names = self._tries_names or guards.tries_names(node)
        node.body = [new for old in node.body for new in _as_list(self.visit(old))]
        self._strict, self._tries_names = before
        for part in (node.handlers, node.orelse, node.finalbody):
            part[:] = [new for old in part for new in _as_list(self.visit(old))]
        return node

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        """Make a name that the file tries raise `AttributeError` if it was removed."""
        if not (self._tries_names and isinstance(node.ctx, ast.Load)):
            return self.generic_visit(node)
        return self._or_raise(node)

    def _or_raise(self, node: ast.Attribute | ast.Call) -> Any:
        """Wrap a dotted name in `or_raise_if_removed`; visit others as usual."""
        root: ast.expr = node
        while isinstance(root, ast.Attribute) or is_lookup(root):
            root = root.args[0] if isinstance(root, ast.Call) else root.value
        if not isinstance(root, ast.Name):
            return self.generic_visit(node)
        return ast.copy_location(self._call("or_raise_if_removed", node), node)

    def visit_Import(self, node: ast.Import) -> Any:
        """Make a statement of each alias, in order."""
        return import_by_calls(node, _is_tensorflow, self._call)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> Any:
        """Make a statement of each name, in order."""
        if node.level or not node.module or not _is_tensorflow(node.module):
            return node
        statements: list[ast.stmt] = []
        for alias in node.names:
            if alias.name == "*":
                free = sorted(self._free)
                call = self._call("star", node.module, global_names(), *free)
                statements.append(ast.Expr(call))
            else:
                call = self._call("name", node.module, alias.name)
                statements.append(bind(alias.asname or alias.name, call))
        return [ast.copy_location(m, node) for m in statements]

    def visit_Call(self, node: ast.Call) -> Any:
        """Look up what a call imports, and give its arguments their current names."""
        if self._tries_names and is_lookup(node):
            return self._or_raise(node)
        self.generic_visit(node)
        if _is_tensorflow(module := loaded_module(node)):
            return ast.copy_location(self._call("module", module), node)
        if called_function(node) == "hasattr":
            has_call = self._call("has")
            has_call.args, has_call.keywords = node.args, node.keywords
            return ast.copy_location(has_call, node)
        node.args = [a for a in node.args if a not in surplus(node)]
        size: ast.expr | None = None
        for keyword in list(node.keywords):
            change = change_of(node, keyword)
            if change and change.new:
                keyword.arg = change.new
            elif change:
                if change.note == BECOMES_PREFETCH:
                    size = keyword.value
                node.keywords.remove(keyword)
        if size is None:
            return node
        prefetched = ast.Call(ast.Attribute(node, "prefetch", ast.Load()), [size], [])
        return ast.copy_location(prefetched, node)

    def _call(self, method: str, *words: str | ast.expr) -> ast.Call:
        self.has_calls = True
        helper: ast.expr = ast.Name(HELPER, ast.Load())
        if self._strict:
            helper = ast.Attribute(helper, "strict", ast.Load())
        return call_of(helper, method, *words)


def _is_tensorflow(name: str) -> bool:
    return name.partition(".")[0] in ROOTS


def _as_list(nodes: object) -> list[Any]:
    return nodes if isinstance(nodes, list) else [nodes]
