"""The folders in which Python looks for modules, besides that of the program."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator, Mapping, Sequence

from hookbridge.old_programs.reading.one_file.modules import Module
from hookbridge.old_programs.reading.whole_programs.libraries import package_of

_PATH = "sys.path"
_METHODS = ("append", "insert", "extend")
_CONSTANTS = {"os.pardir": os.pardir, "os.curdir": os.curdir}
# Functions that give another form of the same path.
_SAME = ("abspath", "realpath", "normpath", "expanduser", "str", "fspath", "Path")


def own_folders_on_path() -> list[str]:
    """Return the folders of `PYTHONPATH` that exist and hold no installed packages."""
    folders = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    paths = [os.path.realpath(folder) for folder in folders if os.path.isdir(folder)]
    return [path for path in paths if not package_of(os.path.join(path, "_.py"))[0]]


def added_folders(module: Module) -> list[str]:
    """Return the folders that a file puts into `sys.path`, as its source shows them.

    They exist; a relative one is looked for in two places.

    These are the working directory, where Python looks, and the file's own folder,
    which is where its author most often worked.
    """
    if _PATH not in module.text or not module.file:
        return []
    own_folder = os.path.dirname(os.path.abspath(module.file))
    paths = _Paths(module.file, _values_by_name(module))
    folders: dict[str, None] = {}
    for node in module.nodes:
        for expression in _path_additions(node):
            path = paths.of(expression)
            if path is None:
                continue
            for base in dict.fromkeys((os.getcwd(), own_folder)):
                folder = os.path.normpath(os.path.join(base, path))
                if os.path.isdir(folder):
                    folders[folder] = None
    return list(folders)


def _path_additions(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the expressions that a statement or a call adds to `sys.path`."""
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


def _values_by_name(module: Module) -> Mapping[str, ast.expr]:
    """Return the last value of each name that is assigned at module level."""
    return {
        target.id: statement.value
        for statement in module.tree.body
        if isinstance(statement, ast.Assign)
        for target in statement.targets
        if isinstance(target, ast.Name)
    }


class _Paths:
    """The paths that expressions of one file give, where its source shows them."""

    def __init__(self, file: str, values: Mapping[str, ast.expr]) -> None:
        self._file = file
        self._values = values
        self._looked_up: list[str] = []  # names on the way to the value

    def of(self, node: ast.expr) -> str | None:
        """Return the path of an expression, or None."""
        if isinstance(node, ast.Constant):
            return node.value if isinstance(node.value, str) else None
        if isinstance(node, ast.Name):
            return self._read_name(node)
        if isinstance(node, ast.Attribute):
            return self._read_attribute(node)
        if isinstance(node, ast.BinOp):
            return self._read_sum(node)
        return self._read_call(node) if isinstance(node, ast.Call) else None

    def _read_name(self, node: ast.Name) -> str | None:
        if node.id == "__file__":
            return os.path.abspath(self._file)
        value = self._values.get(node.id)
        if value is None or node.id in self._looked_up:  # assigned from itself
            return None
        self._looked_up.append(node.id)
        path = self.of(value)
        self._looked_up.pop()
        return path

    def _read_attribute(self, node: ast.Attribute) -> str | None:
        whole = ast.unparse(node)
        if whole in _CONSTANTS:
            return _CONSTANTS[whole]
        path = self.of(node.value) if node.attr == "parent" else None
        return None if path is None else os.path.dirname(path)

    def _read_sum(self, node: ast.BinOp) -> str | None:
        left, right = self.of(node.left), self.of(node.right)
        if left is None or right is None:
            return None
        if isinstance(node.op, ast.Add):
            return left + right
        return f"{left}/{right}" if isinstance(node.op, ast.Div) else None

    def _read_call(self, node: ast.Call) -> str | None:
        """Return the path that a call of `os.path` or `pathlib` gives, or None."""
        function = ast.unparse(node.func).rpartition(".")[2]
        if function == "getcwd":
            return os.curdir
        if function in ("resolve", "absolute") and isinstance(node.func, ast.Attribute):
            return self.of(node.func.value)
        paths = [path for path in map(self.of, node.args) if path is not None]
        if not paths or len(paths) < len(node.args):
            return None
        if function == "join":
            return os.path.join(*paths)
        if function == "dirname":
            # Of a relative path too: `dirname("a.py")` is the working directory.
            return os.path.dirname(paths[0]) or os.curdir
        return paths[0] if function in _SAME and len(paths) == 1 else None
