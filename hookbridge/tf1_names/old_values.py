"""Arguments whose values functions of Python, NumPy and PyYAML refuse today."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from hookbridge.tf1_names import keras_arguments
from hookbridge.tf1_names.syntax import (
    called_function,
    keyword,
    keywords,
    last_name,
)

# They take a sequence; they took whatever gives the arrays one by one.
STACKING = tuple(
    f"numpy.{name}" for name in ("column_stack", "dstack", "hstack", "stack", "vstack")
)
# They take whole numbers; they took a float that is one.
WHOLE = ("random.randint", "random.randrange")
# Function of TensorFlow -> the place of its shape, whose sizes are whole numbers; a
# float that is one was taken, too.
SHAPED = {
    "FixedLenFeature": 0,
    "TensorShape": 0,
    "get_variable": 1,
    "placeholder": 1,
    "sparse_placeholder": 1,
}
# They take a sequence; a set was one.
SAMPLING = "random.sample"
# The names of what these functions take first.
_FIRST = ("arrays", "population", "tup")
# They make an array, of rows of unequal length too until NumPy 1.24.
OF_ARRAYS = ("numpy.array", "numpy.asanyarray", "numpy.asarray")
# Without `sep` it read bytes, which `frombuffer` does; that shares them with its array.
READING = "numpy.fromstring"
# `copy=False` forbids a copy since NumPy 2; it made one where it had to.
MAKING = "numpy.array"
# They need a loader since PyYAML 6; the functions here are those with the last default.
LOADING = {"yaml.load": "yaml.full_load", "yaml.load_all": "yaml.full_load_all"}
_OLD_MODE = re.compile("[rbt+]*U[rbtU+]*")
# What gave a list in Python 2: functions, and the methods of dictionaries.
ITERATORS = frozenset({"filter", "map", "zip"})
VIEWS = frozenset({"items", "keys", "values"})


def old_values(call: ast.Call, function: str) -> Iterator[tuple[ast.expr, str]]:
    """Yield the expressions of a call that are refused today, with new texts.

    Args:
      call: any call.
      function: the dotted name of what is called; empty if it is not known.

    Yields:
      An expression, and its new text, in which `{}` is replaced by its own.
    """
    if (mode := old_mode(call)) is not None:
        yield mode, repr(current_mode(str(mode.value)))
    elif keras_arguments.class_of(function):
        yield from keras_arguments.current_values(call, function)
    elif function in (*STACKING, SAMPLING):
        taken = (*call.args[:1], *keyword(call, *_FIRST))
        yield from ((a, "list({})") for a in taken if _is_no_sequence(a))
    elif function in WHOLE or function.startswith("tf."):
        yield from ((number, "int({})") for number in _numbers(call, function))
    elif function == READING:
        yield from _reading(call)
    elif function in LOADING and _has_one_argument(call):
        yield call.func, LOADING[function]
    elif function == MAKING:
        copies = keyword(call, "copy")
        yield from ((c, "None") for c in copies if getattr(c, "value", None) is False)


def _numbers(call: ast.Call, function: str) -> list[ast.expr]:
    """Return the floats of a call, or of its shape, that has to be whole numbers."""
    values = [*call.args, *keywords(call).values()]
    if function not in WHOLE:
        values = _sizes(call, function.rpartition(".")[2])
    return [value for value in values if _is_float(value)]


def _sizes(call: ast.Call, function: str) -> list[ast.expr]:
    """Return the sizes in the shape of a call, if they stand there one by one."""
    if function not in SHAPED:
        return []
    index = SHAPED[function]
    shapes = (*call.args[index : index + 1], *keyword(call, "shape"))
    listed = (s.elts for s in shapes if isinstance(s, ast.List | ast.Tuple))
    return [size for sizes in listed for size in sizes]


def _reading(call: ast.Call) -> Iterator[tuple[ast.expr, str]]:
    """Yield what reads bytes today, if the call reads them."""
    if reads_bytes(call):
        yield call.func, READING.replace("fromstring", "frombuffer")
        yield call, "{}.copy()"


def _has_one_argument(call: ast.Call) -> bool:
    is_alone = len(call.args) == 1 and not call.keywords
    return is_alone and not isinstance(call.args[0], ast.Starred)


def reads_bytes(call: ast.Call) -> bool:
    """Return whether a call of `numpy.fromstring` has no separator."""
    separators = keyword(call, "sep")
    is_empty = all(getattr(s, "value", s) == "" for s in separators)
    return is_empty and len(call.args) < 4


def old_mode(call: ast.Call) -> ast.Constant | None:
    """Return the mode of an `open` that asks for all ends of lines, or None."""
    if last_name(call.func) != "open":
        return None
    for mode in (*call.args[1:2], *keyword(call, "mode")):
        if isinstance(mode, ast.Constant) and isinstance(mode.value, str):
            return mode if _OLD_MODE.fullmatch(mode.value) else None
    return None


def current_mode(mode: str) -> str:
    """Return a mode without `U`, which Python removed in 3.11."""
    without_u = mode.replace("U", "")
    return without_u if "r" in without_u else f"r{without_u}"


def _is_no_sequence(node: ast.expr) -> bool:
    """Return whether an expression is seen to be an iterator, a view or a set."""
    if isinstance(node, ast.GeneratorExp | ast.Set | ast.SetComp):
        return True
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute):
        return node.func.attr in VIEWS and not (node.args or node.keywords)
    return called_function(node) in {*ITERATORS, "set"}


def _is_float(node: ast.expr) -> bool:
    """Return whether an expression is seen to be a float."""
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Div)
    return isinstance(node, ast.Constant) and isinstance(node.value, float)
