"""Arguments of Keras that have another name today, or another value.

Keras 2 took those of Keras 1 until 2.3. The table, data/changes_keras.json, was read
from its module `keras.legacy.interfaces`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from hookbridge.tf1_names.changes import (
    COUNTED_SAMPLES,
    Change,
    changes_in,
    of_method,
)
from hookbridge.tf1_names.syntax import called_method, keywords

# What had one size of a kernel each; the first one has all of them today.
_SIDES = (("nb_row", "nb_col"), ("kernel_dim1", "kernel_dim2", "kernel_dim3"))
# The old name of a learning rate, which programs of TensorFlow 2 had, too.
RATE = "lr"
# What optimizers took until 2.10.
OF_OLD_OPTIMIZERS = frozenset(("decay", RATE))
# Every old argument.
OLD: frozenset[str] = OF_OLD_OPTIMIZERS.union(*changes_in("keras").values())
# `BatchNormalization(mode=0)` is the only mode that is left.
_MODE = "mode"


def of_class(name: str) -> dict[str, Change]:
    """Return the changed arguments of a class of Keras, by old name."""
    return changes_in("keras").get(name, {})


def class_of(function: str) -> str:
    """Return the class of Keras that a name means; empty without old arguments."""
    if "keras" not in function:
        return ""  # a scan asks for every call
    module, _, name = function.rpartition(".")
    is_of_keras = module.startswith(("keras", "tf.keras", "tf.compat.v1.keras"))
    return name if is_of_keras and of_class(name) else ""


def change_of(function: str, keyword: ast.keyword) -> Change | None:
    """Return how an argument of a class of Keras has changed; None if it has not.

    Args:
      function: the dotted name of the class.
      keyword: an argument of a call of it.
    """
    argument = keyword.arg or ""
    if argument == _MODE and getattr(keyword.value, "value", None) != 0:
        return None  # it is refused, as it has been since Keras 2
    return of_class(class_of(function)).get(argument)


def sides(call: ast.Call, function: str) -> list[ast.expr]:
    """Return the sizes of a kernel that a layer gets one by one, without names."""
    names = _side_names(class_of(function))
    if not names or len(call.args) != 1 + len(names):
        return []
    argument_names = keywords(call).keys()
    # The third argument of Keras 2 are the strides: Keras 2.3 told them by these names.
    is_new = bool(argument_names & {"data_format", "padding", "strides"})
    kinds = (ast.Starred, ast.Tuple, ast.List)
    is_new |= any(isinstance(argument, kinds) for argument in call.args)
    return [] if is_new else call.args[1:]


def _side_names(name: str) -> tuple[str, ...]:
    """Return the arguments that had the sizes of the kernel of a class."""
    old = of_class(name)
    return next((names for names in _SIDES if names[0] in old), ())


def current_values(call: ast.Call, function: str) -> Iterator[tuple[ast.expr, str]]:
    """Yield the values of a call of Keras that have another form today, and which."""
    if positional := sides(call, function):
        yield positional[0], _join_sizes(positional)
    named = keywords(call)
    names = _side_names(class_of(function))
    if names and all(name in named for name in names):
        yield named[names[0]], _join_sizes([named[name] for name in names])
    for argument, change in of_class(class_of(function)).items():
        value = getattr(named.get(argument), "value", None)
        if isinstance(value, str) and value in change.values:
            yield named[argument], repr(change.values[value])


def _join_sizes(sizes: list[ast.expr]) -> str:
    """Return the first one of the sizes with the others behind it."""
    further = ", ".join(ast.unparse(size).replace("{", "{{") for size in sizes[1:])
    return f"({{}}, {further})"


def has_old_ends(call: ast.Call) -> bool:
    """Return whether a call has what `Model` called its inputs and outputs."""
    return {"input", "output"} <= keywords(call).keys()


def sample_counts(call: ast.Call) -> Iterator[Change]:
    """Yield the arguments that counted samples, and count steps today."""
    changes = of_method(called_method(call))
    for keyword in call.keywords:
        change = changes.get(keyword.arg or "")
        if change and change.note == COUNTED_SAMPLES:
            yield change


def is_of_keras1(call: ast.Call, function: str) -> bool:
    """Return whether a call has arguments that no Keras of TensorFlow 2 takes.

    Args:
      call: any call.
      function: the dotted name of what is called; empty if it is not known.
    """
    argument_names = keywords(call).keys() - {RATE}
    old = changes_in("keras").get(f".{called_method(call)}") or of_class(
        class_of(function)
    )
    return bool(argument_names & old.keys() or sides(call, function))


def current_arguments(
    name: str, args: tuple[object, ...], named: dict[str, object]
) -> tuple[tuple[object, ...], dict[str, object]]:
    """Return what a class of Keras gets, as it takes it today.

    Args:
      name: the name of the class.
      args: the arguments without names that it got.
      named: those with names.
    """
    args, named = _with_joined_sides(name, args, named)
    changes = of_class(name)
    translated = {}
    for argument, value in named.items():
        change = changes.get(argument)
        if change is None or (argument == _MODE and value != 0):
            translated[argument] = value  # a refused mode, too
        elif change.new:
            translated[change.new] = change.current_value(value)
    return args, translated


def _with_joined_sides(
    name: str, args: tuple[object, ...], named: dict[str, object]
) -> tuple[tuple[object, ...], dict[str, object]]:
    """Return the arguments of a class, with the sides of a window as one tuple."""
    names, sizes = _side_names(name), args[1:]
    if names and len(sizes) == len(names) and all(isinstance(n, int) for n in sizes):
        return (args[0], sizes), named
    if names and all(side in named for side in names):
        named = {**named, names[0]: tuple(named[side] for side in names)}
    return args, named
