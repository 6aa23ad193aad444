"""How the arguments of a call have changed."""

from __future__ import annotations

import ast

from hookbridge.tf1_names import keras_arguments
from hookbridge.tf1_names.changes import (
    COUNTED_SAMPLES,
    NEEDS_NO_NAME,
    OF_FUNCTIONS,
    SECOND_OF_TWO,
    Change,
    of_method,
)
from hookbridge.tf1_names.old_values import READING, reads_bytes
from hookbridge.tf1_names.syntax import called_method


def change_of(
    call: ast.Call, keyword: ast.keyword, function: str = ""
) -> Change | None:
    """Return how an argument has changed, if its name is not the current one.

    Args:
      call: a call of a method, or of a function of a module.
      keyword: an argument of it.
      function: the dotted name of the function; empty for a method.

    Returns:
      The change. None for an argument that has its name, and for one that counted
      samples, which `keras_arguments.counted` yields.
    """
    if function == READING and not reads_bytes(call):
        return None
    if keras_arguments.class_of(function):
        return keras_arguments.change_of(function, keyword)
    changes = OF_FUNCTIONS.get(function) or of_method(called_method(call))
    change = changes.get(keyword.arg or "")
    return None if change and change.note == COUNTED_SAMPLES else change


def surplus(call: ast.Call, function: str = "") -> list[ast.expr]:
    """Return the positional arguments that a function no longer takes.

    Args:
      call: any call.
      function: the dotted name of what is called; empty if it is not known.
    """
    changes = of_method(called_method(call)).values()
    is_shorter = any(change.note == SECOND_OF_TWO for change in changes)
    return [
        *keras_arguments.sides(call, function)[1:],
        *(call.args[1:] if is_shorter else ()),
    ]


def needs_no_name(call: ast.Call, keyword: ast.keyword, change: Change) -> bool:
    """Return whether a renamed argument is the second one, and needs no name.

    The shape of `reshape` has none that all supported versions of NumPy know.

    Args:
      call: the call.
      keyword: the argument.
      change: how it has changed.
    """
    is_second = len(call.args) == 1 and keyword is call.keywords[0]
    return change.note == NEEDS_NO_NAME and is_second
