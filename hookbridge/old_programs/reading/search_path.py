"""The folders that a file puts into `sys.path`, as far as its source shows them."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator, Mapping, Sequence

from hookbridge.old_programs.reading.modules import Module

_PATH = "sys.path"
_METHODS = ("append", "insert", "extend")
# Functions that give another form of the same path.
_SAME = ("abspath", "realpath", "normpath", "expanduser", "str", "fspath", "Path")


def added_folders(module: Module) -> list[str]:
    """The folders that exist; a relative one is looked for in two places.

    These are the working directory, where Python looks, and the file's own folder,
    which is where its author most often worked.
    """
    if _PATH not in module.text or not module.file:
        return []
    own = os.path.dirname(os.path.abspath(module.file))
    values = _assigned(module)
    found: dict[str, None] = {}
    for node in module.nodes:
        for expression in _added(node):
            path = _path(expression, module.file, values)
            if path is None:
                continue
            for place in dict.fromkeys((os.getcwd(), own)):
                folder = os.path.normpath(os.path.join(place, path))
                if os.path.isdir(folder):
                    found[folder] = None
    return list(found)


def _added(node: ast.AST) -> Iterator[ast.expr]:
    """The expressions that a statement or a call adds to `sys.path`."""
    targets: list[ast.expr] = []
    values: list[ast.expr] = []
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr in _METHODS:
            targets, values = [node.func.value], node.args[-1:]
    elif isinstance(node, ast.AugAssign):
        targets, values = [node.target], [node.value]
    elif isinstance(node, ast.Assign):
        targets, values = node.targets, [node.value]
    if any(ast.unparse(target) == _PATH for target in targets):
        yield from _items(values)


def _items(nodes: Sequence[ast.expr]) -> Iterator[ast.expr]:
    for node in nodes:
        if isinstance(node, ast.List | ast.Tuple):
            yield from node.elts
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            yield from _items([node.left, node.right])
        else:
            yield node


def _assigned(module: Module) -> Mapping[str, ast.expr]:
    """The values of names that are assigned at module level, the last one each."""
    return {
        target.id: statement.value
        for statement in module.tree.body
        if isinstance(statement, ast.Assign)
        for target in statement.targets
        if isinstance(target, ast.Name)
    }


def _path(
    node: ast.expr, file: str, values: Mapping[str, ast.expr], depth: int = 0
) -> str | None:
    """The path that an expression gives; None where the source does not show it."""
    if depth > 20:  # a name that is assigned from itself
        return None
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.Name):
        if node.id == "__file__":
            return os.path.abspath(file)
        value = values.get(node.id)
        return None if value is None else _path(value, file, values, depth + 1)
    if isinstance(node, ast.Attribute):
        whole = ast.unparse(node)
        if whole in ("os.pardir", "os.curdir"):
            return os.pardir if whole == "os.pardir" else os.curdir
        above = _path(node.value, file, values, depth + 1)
        is_parent = above is not None and node.attr == "parent"
        return os.path.dirname(above or "") if is_parent else None
    if isinstance(node, ast.BinOp):
        parts = [_path(one, file, values, depth + 1) for one in (node.left, node.right)]
        if None in parts or not isinstance(node.op, ast.Add | ast.Div):
            return None
        left, right = (part or "" for part in parts)
        return left + right if isinstance(node.op, ast.Add) else f"{left}/{right}"
    if not isinstance(node, ast.Call):
        return None
    function = ast.unparse(node.func).rpartition(".")[2]
    if function == "getcwd":
        return os.curdir
    if function in ("resolve", "absolute") and isinstance(node.func, ast.Attribute):
        return _path(node.func.value, file, values, depth + 1)
    parts = [_path(one, file, values, depth + 1) for one in node.args]
    if not parts or None in parts:
        return None
    texts = [part or "" for part in parts]
    if function == "join":
        return os.path.join(*texts)
    if function == "dirname":
        # Of a relative path too: `dirname("a.py")` is the working directory.
        return os.path.dirname(texts[0]) or os.curdir
    return texts[0] if function in _SAME and len(texts) == 1 else None
