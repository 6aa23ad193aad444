"""What conditions about versions come to; nothing of the program is run."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Sequence
from typing import Any

from hookbridge.old_programs.reading.names.bound_names import Names
from hookbridge.old_programs.reading.names.import_statements import canonical
from hookbridge.tf1_names.syntax import called_function, last_name, times_bound

# What code looks at that has branches for other versions of TensorFlow or of Python.
_VERSIONS = frozenset(
    {
        "__version__",
        "VERSION",
        "version_info",
        "hexversion",
        "PY2",
        "PY3",
        "python_version",
        "python_version_tuple",
    }
)
# What a file of TensorFlow 1 reads as its version under `hookbridge run`.
UNDER_RUN = "1.15.5"
# Both ends of the versions that a program may meet: a rewritten file reads the version
# that is installed.
_ENDS = (("3.10.0", UNDER_RUN), ("3.99.0", "2.99.0"))
_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda item, items: item in items,
    ast.NotIn: lambda item, items: item not in items,
}
_METHODS = frozenset({"split", "startswith", "strip", "rstrip"})


def _numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, as far as they lead it."""
    match = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(map(int, match[0].split("."))) if match else ()


# What functions of one argument make, by their last names: those of Python, and those
# that make a version of a string.
_CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    "int": int,
    "float": float,
    "str": str,
    "tuple": tuple,
    "list": tuple,
    "LooseVersion": _numbers,
    "StrictVersion": _numbers,
    "Version": _numbers,
    "parse": _numbers,
    "parse_version": _numbers,
}


class UnknownConditionError(Exception):
    """A part of a condition is not known."""


class Conditions:
    """The conditions of one module."""

    def __init__(self, nodes: Sequence[ast.AST], names: Names) -> None:
        self._names = names
        # The names that the module binds once, with their values.
        self._values: dict[str, ast.expr] = {}
        # The names whose values depend on a version.
        self._of_version: set[str] = set()
        stores = times_bound(nodes)
        for node in nodes:
            if isinstance(node, ast.Assign) and len(node.targets) == 1:
                target = node.targets[0]
                bound = [n.id for n in ast.walk(target) if isinstance(n, ast.Name)]
                if any(stores[name] != 1 for name in bound):
                    continue
                if self.depend_on_version(node.value):
                    self._of_version.update(bound)
                    if isinstance(target, ast.Name):
                        self._values[target.id] = node.value

    def depend_on_version(self, test: ast.expr) -> bool:
        """Return whether it looks at a version, or whether a module has a name."""
        nodes = list(ast.walk(test))
        calls = set(map(called_function, nodes))
        attributes = {n.attr for n in nodes if isinstance(n, ast.Attribute)}
        names = {n.id for n in nodes if isinstance(n, ast.Name)}
        is_of_version = (attributes | names) & _VERSIONS or names & self._of_version
        return bool(calls & {"hasattr", "dir"} or is_of_version)

    def outcome(self, test: ast.expr, tensorflow: str = "") -> bool | None:
        """Return what a condition comes to under all versions; None if unknown.

        Args:
          test: the condition.
          tensorflow: the only version of TensorFlow that counts; empty for all of them.
        """
        try:
            outcomes = {
                bool(_Reading(self, python, tensorflow or version).value(test))
                for python, version in _ENDS
            }
        except (
            UnknownConditionError,
            TypeError,
            ValueError,
            LookupError,
            RecursionError,
        ):
            return None
        return outcomes.pop() if len(outcomes) == 1 else None

    def known(self, python: str, tensorflow: str, node: ast.AST) -> Any:
        """Return what a name of a version of Python or TensorFlow is, or a value."""
        values: dict[str, Any] = {
            "sys.version": python,
            "sys.version_info": _numbers(python),
            "sys.version_info.major": 3,
            "platform.python_version": python,
            "platform.python_version_tuple": tuple(python.split(".")),
            "six.PY2": False,
            "six.PY3": True,
            "typing.TYPE_CHECKING": False,
        }
        for module in ("tf", "tf.compat.v1"):
            for name in ("__version__", "VERSION", "version.VERSION"):
                values[f"{module}.{name}"] = tensorflow
        name = canonical(self._names.through_program(node) or "")
        if name in values:
            return values[name]
        if isinstance(node, ast.Name) and node.id in self._values:
            return self._values[node.id]
        raise UnknownConditionError


class _Reading:
    """The values of expressions under one Python and one TensorFlow."""

    def __init__(self, conditions: Conditions, python: str, tensorflow: str) -> None:
        self._conditions = conditions
        self._versions = (python, tensorflow)

    def value(self, node: ast.AST) -> Any:
        """Return the value of an expression.

        Only what conditions about versions are made of is known: constants, versions,
        their parts, numbers and strings of them, comparisons, `and`, `or` and `not`.
        """
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Tuple | ast.List):
            return tuple(map(self.value, node.elts))
        if isinstance(node, ast.BoolOp):
            return self._either(node)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return not self.value(node.operand)
        if isinstance(node, ast.Compare):
            return self._value_of_comparison(node)
        if isinstance(node, ast.Subscript):
            return self.value(node.value)[self._place(node.slice)]
        if isinstance(node, ast.Call):
            return self._value_of_call(node)
        if isinstance(node, ast.Name | ast.Attribute):
            known = self._conditions.known(*self._versions, node)
            return self.value(known) if isinstance(known, ast.AST) else known
        raise UnknownConditionError

    def _either(self, node: ast.BoolOp) -> bool:
        """Return the value of `and` and `or`, of which one known part may be enough."""
        enough = isinstance(node.op, ast.Or)
        is_known = True
        for part in node.values:
            try:
                if bool(self.value(part)) is enough:
                    return enough
            except UnknownConditionError:
                is_known = False
        if not is_known:
            raise UnknownConditionError
        return not enough

    def _value_of_comparison(self, node: ast.Compare) -> bool:
        left, is_true = self.value(node.left), True
        for kind, part in zip(node.ops, node.comparators, strict=True):
            if type(kind) not in _COMPARISONS:
                raise UnknownConditionError
            right = self.value(part)
            is_true = is_true and bool(_COMPARISONS[type(kind)](left, right))
            left = right
        return is_true

    def _place(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Slice):
            ends = (node.lower, node.upper, node.step)
            return slice(*(end and self.value(end) for end in ends))
        return self.value(node)

    def _value_of_call(self, node: ast.Call) -> Any:
        """Return what a function makes of a version: a number, a string or parts."""
        if node.keywords:
            raise UnknownConditionError
        function, arguments = node.func, node.args
        name = last_name(function)
        if name in _CONVERSIONS and len(arguments) == 1:
            return _CONVERSIONS[name](self.value(arguments[0]))
        if name == "map" and [ast.unparse(a) for a in arguments[:1]] == ["int"]:
            return tuple(int(part) for part in self.value(arguments[1]))
        if name in ("python_version", "python_version_tuple") and not arguments:
            return self.value(function)
        if isinstance(function, ast.Attribute) and name in _METHODS:
            text = self.value(function.value)
            if isinstance(text, str):
                return getattr(text, name)(*map(self.value, arguments))
        raise UnknownConditionError
