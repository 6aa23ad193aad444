"""Methods that built-in types have lost, as the program's own files find them.

A type that is written in C takes no attribute. So `x.tostring` in an own file is read
as `__hookbridge_method__(x, "tostring")`.
"""

from __future__ import annotations

import array
import ast
import functools
import pkgutil
from collections.abc import Callable
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np

HELPER = "__hookbridge_method__"
_HERE = "hookbridge.old_programs.run.given_back.lost_methods"


def _tostring(self: Any, *order: Any, **named: Any) -> bytes:
    data: bytes = self.tobytes(*order, **named)
    return data


def _itemset(self: Any, *args: Any) -> None:
    """`array.itemset(value)`, `(index, value)` or `(row, column, value)`."""
    *index, value = args
    plain = self.view(np.ndarray)  # whatever a class below, or a mask, makes of it
    if not index and self.size == 1:
        plain.fill(value)
    elif not index:
        raise ValueError("can only convert an array of size 1 to a Python scalar")
    elif len(index) == 1 and not isinstance(index[0], tuple):
        plain.flat[index[0]] = value
    else:
        plain[index[0] if len(index) == 1 else tuple(index)] = value


def _ptp(self: Any, axis: Any = None, out: Any = None, keepdims: bool = False) -> Any:
    """Not `numpy.ptp`: it calls the method of a class below, which may call this."""
    highest: Any = np.maximum
    lowest: Any = np.minimum
    highest = highest.reduce(self, axis, None, out, keepdims)
    lowest = lowest.reduce(self, axis, None, None, keepdims)
    return np.subtract(highest, lowest, out)


def _newbyteorder(self: Any, new_order: str = "S") -> Any:
    return self.view(self.dtype.newbyteorder(new_order))


def _getiterator(self: Element, tag: str | None = None) -> list[Element]:
    return list(self.iter(tag))


# Method of a type -> what does the same.
OURS: dict[str, Callable[..., Any]] = {
    "array.array.fromstring": array.array.frombytes,
    "array.array.tostring": array.array.tobytes,
    "numpy.generic.newbyteorder": _newbyteorder,
    "numpy.generic.ptp": _ptp,
    "numpy.generic.tostring": _tostring,
    "numpy.ndarray.itemset": _itemset,
    "numpy.ndarray.newbyteorder": _newbyteorder,
    "numpy.ndarray.ptp": _ptp,
    "numpy.ndarray.tostring": _tostring,
    "xml.etree.ElementTree.Element.getchildren": list,
    "xml.etree.ElementTree.Element.getiterator": _getiterator,
}
_SUPER: Any = super  # the types do not say that it has `__self__`
_METHODS = frozenset(name.rpartition(".")[2] for name in OURS)


def method(owner: Any, name: str) -> Any:
    """`owner.name`, or what did the same under a name that the owner's type has lost.

    Raises:
      AttributeError: it never had such a name.
    """
    try:
        return getattr(owner, name)
    except AttributeError:
        if isinstance(owner, _SUPER):
            owner = owner.__self__
        kind: Any = owner if isinstance(owner, type) else type(owner)
        if replacement := _ours(kind, name):
            is_class = kind is owner
            return replacement if is_class else functools.partial(replacement, owner)
        raise


@functools.cache
def _ours(kind: type, name: str) -> Callable[..., Any] | None:
    """Return what does the same as a removed method of a type or of its bases."""
    for full, replacement in OURS.items():
        above, _, attribute = full.rpartition(".")
        if attribute == name and issubclass(kind, pkgutil.resolve_name(above)):
            return replacement
    return None


def may_be_in(source: bytes) -> bool:
    """Return whether a file may use one of them."""
    return any(name.encode() in source for name in _METHODS)


class Asking(ast.NodeTransformer):
    """Asks `method` for each attribute of such a name."""

    def __init__(self) -> None:
        self.found = False

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """Visit each attribute of a file."""
        self.generic_visit(node)
        if node.attr not in _METHODS or not isinstance(node.ctx, ast.Load):
            return node
        self.found = True
        words: list[ast.expr] = [node.value, ast.Constant(node.attr)]
        call = ast.Call(ast.Name(HELPER, ast.Load()), words, [])
        return ast.copy_location(call, node)


# The import of the helper, which a file that has asked begins with.
IMPORT = ast.ImportFrom(_HERE, [ast.alias("method", HELPER)], 0)
