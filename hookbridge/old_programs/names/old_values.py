"""Arguments whose values functions of Python, NumPy and PyYAML refuse today."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

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
# Without `sep` it read bytes, which `frombuffer` does; that shares them with its array.
READING = "numpy.fromstring"
# `copy=False` forbids a copy since NumPy 2; it made one where it had to.
MAKING = "numpy.array"
# They need a loader since PyYAML 6; the functions here are those with the last default.
LOADING = {"yaml.load": "yaml.full_load", "yaml.load_all": "yaml.full_load_all"}
_OLD_MODE = re.compile("[rbt+]*U[rbtU+]*")
_ITERATORS = frozenset({"filter", "map", "zip"})
_VIEWS = frozenset({"items", "keys", "values"})


def old_values(call: ast.Call, function: str) -> Iterator[tuple[ast.expr, str]]:
    """The expressions of a call that are refused today, and what to write for each.

    Args:
      call: any call.
      function: the dotted name of what is called; empty if it is not known.

    Yields:
      An expression, and its text of today, in which `{}` stands for its own text.
    """
    if (mode := old_mode(call)) is not None:
        yield mode, repr(mode_of_today(str(mode.value)))
    elif function in (*STACKING, SAMPLING):
        yield from ((one, "list({})") for one in call.args[:1] if _is_no_sequence(one))
    elif function in WHOLE:
        yield from ((one, "int({})") for one in call.args if _is_float(one))
    elif function.startswith("tf."):
        yield from (
            (one, "int({})") for one in _sizes(call, function) if _is_float(one)
        )
    elif function == READING or function in LOADING:
        yield from _reading(call, function)
    elif function == MAKING:
        copy = _argument(call, "copy")
        yield from ((one, "None") for one in (copy,) if one and _is_false(one))


def _sizes(call: ast.Call, function: str) -> list[ast.expr]:
    """The sizes in the shape of a call, if they stand there one by one."""
    place = SHAPED.get(function.rpartition(".")[2])
    if place is None:
        return []
    shapes = (*call.args[place : place + 1], _argument(call, "shape"))
    found = (one.elts for one in shapes if isinstance(one, ast.List | ast.Tuple))
    return [size for sizes in found for size in sizes]


def _reading(call: ast.Call, function: str) -> Iterator[tuple[ast.expr, str]]:
    """What reads bytes or YAML today, if the call reads them."""
    if function == READING:
        if reads_bytes(call):
            yield call.func, READING.replace("fromstring", "frombuffer")
            yield call, "{}.copy()"
    elif len(call.args) == 1 and not (call.keywords or _is_starred(call.args[0])):
        yield call.func, LOADING[function]


def reads_bytes(call: ast.Call) -> bool:
    """Whether a call of `numpy.fromstring` has no separator."""
    separator = _argument(call, "sep")
    is_empty = separator is None or getattr(separator, "value", separator) == ""
    return is_empty and len(call.args) < 4


def old_mode(call: ast.Call) -> ast.Constant | None:
    """The mode of an `open` that asks for all ends of lines, which any text has now."""
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    if name != "open":
        return None
    for one in (*call.args[1:2], _argument(call, "mode")):
        if isinstance(one, ast.Constant) and isinstance(one.value, str):
            return one if _OLD_MODE.fullmatch(one.value) else None
    return None


def mode_of_today(mode: str) -> str:
    """A mode without `U`, which Python lost in 3.11."""
    rest = mode.replace("U", "")
    return rest if "r" in rest else f"r{rest}"


def _argument(call: ast.Call, name: str) -> ast.expr | None:
    return next((one.value for one in call.keywords if one.arg == name), None)


def _is_starred(node: ast.expr) -> bool:
    return isinstance(node, ast.Starred)


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


def _is_no_sequence(node: ast.expr) -> bool:
    """Whether an expression is seen to be an iterator, a view or a set."""
    if isinstance(node, ast.GeneratorExp | ast.Set | ast.SetComp):
        return True
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute):
        return node.func.attr in _VIEWS and not (node.args or node.keywords)
    return getattr(node.func, "id", "") in {*_ITERATORS, "set"}


def _is_float(node: ast.expr) -> bool:
    """Whether an expression is seen to be a float."""
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Div)
    return isinstance(node, ast.Constant) and isinstance(node.value, float)
