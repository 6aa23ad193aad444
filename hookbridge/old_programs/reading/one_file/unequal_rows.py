"""Which expressions of a module may be lists of rows of unequal length."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from hookbridge.tf1_names.syntax import (
    called_function,
    called_method,
    enclosing,
    last_name,
)

# These give as many values as there happen to be.
_VARYING = frozenset({"filter", "list", "map", "rsplit", "sorted", "split", "tuple"})
_Functions = ast.FunctionDef | ast.AsyncFunctionDef
_Scopes = _Functions | ast.Module
# A function, and the number of one of its parameters.
Parameter = tuple[str, int]


class _Variable(NamedTuple):
    """What a scope does with a name.

    Attributes:
      values: what it assigns.
      appended: what it appends.
    """

    values: list[ast.expr]
    appended: list[ast.expr]


class UnequalRows:
    """What is known of the lists in a module.

    Args:
      nodes: all nodes of the module.
      parents: each of them, and the node that holds it.
    """

    def __init__(
        self, nodes: Iterable[ast.AST], parents: Mapping[ast.AST, ast.AST]
    ) -> None:
        self._parents = parents
        self._calls: list[ast.Call] = []
        self._variables: dict[tuple[ast.AST, str], _Variable] = {}
        self._asked: set[tuple[ast.AST, str]] = set()
        for node in nodes:
            self._note(node)

    def _note(self, node: ast.AST) -> None:
        """Note what a node says of the variables of its scope."""
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    self._variable(node, target.id).values.append(node.value)
        elif isinstance(node, ast.Call):
            self._calls.append(node)
            if called_method(node) == "append" and len(node.args) == 1:
                name = ast.unparse(node.func).rpartition(".")[0]
                self._variable(node, name).appended.append(node.args[0])

    def _scope(self, node: ast.AST) -> ast.AST:
        """Return the function around a node, or the module."""
        return enclosing(node, _Scopes, self._parents)

    def _variable(self, node: ast.AST, name: str) -> _Variable:
        key = self._scope(node), name
        return self._variables.setdefault(key, _Variable([], []))

    def may_differ(
        self, node: ast.expr, parameters: Collection[Parameter] = ()
    ) -> bool:
        """Return whether a list, as the code shows it, may have rows of unequal length.

        Args:
          node: the list.
          parameters: those that get such lists from other places of the program.
        """
        if isinstance(node, ast.List | ast.Tuple):
            return has_unequal_rows(node)
        if isinstance(node, ast.ListComp | ast.GeneratorExp):
            return self._varies(node.elt)
        if isinstance(node, ast.Call):
            name = called_function(node)
            if name == "zip":
                return len(node.args) > 1
            takes_one = name in ("list", "sorted", "tuple") and len(node.args) == 1
            return takes_one and self.may_differ(node.args[0], parameters)
        return isinstance(node, ast.Name) and self._name_may_differ(node, parameters)

    def parameters(self) -> Iterator[Parameter]:
        """Yield the parameters that get such lists in this module."""
        for call in self._calls:
            name = last_name(call.func)
            for index, argument in enumerate(call.args):
                if name and self.may_differ(argument):
                    yield name, index

    def _name_may_differ(
        self, node: ast.Name, parameters: Collection[Parameter]
    ) -> bool:
        """Return whether a variable may have rows of unequal length."""
        scope = self._scope(node)
        if isinstance(scope, _Functions):
            names = [argument.arg for argument in scope.args.args]
            if node.id in names and (scope.name, names.index(node.id)) in parameters:
                return True
        key = scope, node.id
        variable = self._variables.get(key)
        if variable is None or key in self._asked:
            return False
        self._asked.add(key)
        may_differ = any(map(self.may_differ, variable.values))
        self._asked.discard(key)
        return may_differ or any(map(self._varies, variable.appended))

    def _varies(self, row: ast.expr) -> bool:
        """Return whether a row has as many values as there happen to be."""
        if isinstance(row, ast.ListComp):
            generators = row.generators
            return any(g.ifs or called_function(g.iter) != "range" for g in generators)
        if isinstance(row, ast.Call):
            return last_name(row.func) in _VARYING
        if not isinstance(row, ast.Name):
            return False
        variable = self._variables.get((self._scope(row), row.id))
        if variable is None or not variable.appended:
            return False
        return any(isinstance(v, ast.List) and not v.elts for v in variable.values)


def has_unequal_rows(node: ast.List | ast.Tuple) -> bool:
    """Return whether a list has rows of unequal length, or rows and others."""
    lengths = {
        len(row.elts) if isinstance(row, ast.List | ast.Tuple) else None
        for row in node.elts
        if isinstance(row, ast.List | ast.Tuple | ast.Constant)
    }
    return len(lengths) > 1
