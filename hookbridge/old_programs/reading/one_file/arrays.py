"""Which expressions of a module are arrays or pictures for certain, and not others."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence

from hookbridge.tf1_names.syntax import enclosing, last_name

# What functions of these return is an array or a picture.
_LIBRARIES = frozenset({"PIL", "array", "cv2", "imageio", "numpy", "scipy", "skimage"})
_READERS = frozenset({"matplotlib.image.imread", "matplotlib.pyplot.imread"})
# What these methods return is one, whatever they are called on.
_METHODS = frozenset(
    {"astype", "eval", "flatten", "numpy", "ravel", "reshape", "squeeze", "transpose"}
)
# What has one of these is one.
_FIELDS = frozenset({"astype", "dtype", "ndim", "reshape", "shape"})
# Calls of functions whose names have this word take bytes, as those of arrays are; of
# other objects `tostring` gives a string.
_BYTES = "bytes"
_Scope = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


class Arrays:
    """What is known of the values in a module.

    Args:
      parents: each node of the module, and the node that holds it.
      canonical: the dotted name that an expression means; None for other expressions.
    """

    def __init__(
        self,
        parents: Mapping[ast.AST, ast.AST],
        canonical: Callable[[ast.AST], str | None],
    ) -> None:
        self._canonical = canonical
        self._parents = parents
        self._asked: set[str] = set()

    def has_array(self, method: ast.Attribute) -> bool:
        """Return whether a method, such as `x.tostring`, is certainly an array's."""
        return self._is_array(method.value) or self._gives_bytes(method)

    def _is_array(self, node: ast.expr) -> bool:
        """Return whether an expression is made from the arrays of a library."""
        if isinstance(node, ast.Call):
            name = self._canonical(node.func) or ""
            if name.partition(".")[0] in _LIBRARIES or name in _READERS:
                return True
            function = node.func
            if not isinstance(function, ast.Attribute):
                return False
            is_made = function.attr in _METHODS or _is_run(function)
            return is_made or self._is_array(function.value)
        if isinstance(node, ast.Subscript | ast.Attribute | ast.Starred):
            return self._is_array(node.value)
        if isinstance(node, ast.BinOp):
            return self._is_array(node.left) or self._is_array(node.right)
        return isinstance(node, ast.Name) and self._is_name_of_array(node)

    def _is_name_of_array(self, node: ast.Name) -> bool:
        """Return whether a name is used as an array, or only has arrays as values."""
        scope = enclosing(node, _Scope, self._parents)
        inside = list(ast.walk(scope))
        if any(_is_field(part, node.id) for part in inside):
            return True
        values = list(self._values(node.id, inside))
        if node.id in self._asked or not values:
            return False
        self._asked.add(node.id)
        try:
            return all(value is not None and self._is_array(value) for value in values)
        finally:
            self._asked.discard(node.id)

    def _values(
        self, name: str, inside: Sequence[ast.AST]
    ) -> Iterator[ast.expr | None]:
        """Yield the values that a name gets; None for one that is not seen."""
        for node in inside:
            if isinstance(node, ast.arg) and node.arg == name:
                yield None
            is_name = isinstance(node, ast.Name) and node.id == name
            if is_name and isinstance(getattr(node, "ctx", None), ast.Store):
                yield _value(self._parents[node])

    def _gives_bytes(self, method: ast.Attribute) -> bool:
        """Return whether what a method returns is taken as bytes."""
        call = self._parents[method]
        if self._is_taken(call):
            return True
        parent = self._parents[call]
        if not (isinstance(parent, ast.Assign) and len(parent.targets) == 1):
            return False
        target = parent.targets[0]
        return isinstance(target, ast.Name) and any(
            self._is_taken(part)
            for part in ast.walk(enclosing(method, _Scope, self._parents))
            if isinstance(part, ast.Name)
            and part.id == target.id
            and isinstance(part.ctx, ast.Load)
        )

    def _is_taken(self, node: ast.AST) -> bool:
        """Return whether a call that takes bytes has an expression as an argument."""
        node = self._parents[node]
        while isinstance(node, ast.List | ast.Tuple | ast.keyword):
            node = self._parents[node]
        if not isinstance(node, ast.Call):
            return False
        return _BYTES in last_name(node.func).lower()


def _value(parent: ast.AST) -> ast.expr | None:
    """Return what a statement gives to a name in it; None if that is not seen."""
    if isinstance(parent, ast.Assign | ast.AugAssign | ast.AnnAssign):
        return parent.value
    return parent.iter if isinstance(parent, ast.For | ast.comprehension) else None


def _is_run(function: ast.Attribute) -> bool:
    """Return whether a method is `run` of a session."""
    return function.attr == "run" and "sess" in last_name(function.value).lower()


def _is_field(node: ast.AST, name: str) -> bool:
    """Return whether a node is a field of a name that only arrays have."""
    return (
        isinstance(node, ast.Attribute)
        and node.attr in _FIELDS
        and isinstance(node.value, ast.Name)
        and node.value.id == name
    )
