"""Arguments that functions no longer take or refuse, and take again."""

from __future__ import annotations

import contextlib
import functools
import pkgutil
import sys
from collections.abc import Callable
from inspect import signature
from typing import Any, TypeAlias, TypeVar

import numpy as np

from hookbridge.ground.patching import assign
from hookbridge.legacy import numpy_arrays
from hookbridge.old_programs.run.restored import restored_randomness
from hookbridge.tf1_names import old_values
from hookbridge.tf1_names.changes import OF_FUNCTIONS, Change

_Function: TypeAlias = Callable[..., Any]
_Any = TypeVar("_Any", bound=Callable[..., Any])
# Functions that make arrays of lists themselves.
_OF_LISTS = tuple(
    f"numpy.{name}"
    for name in (
        "append",
        "array_split",
        "concatenate",
        "copy",
        "delete",
        "insert",
        "random.permutation",
        "repeat",
        "save",
        "savez",
        "savez_compressed",
        "shape",
        "size",
        "split",
        "take",
        "unique",
        "where",
    )
)
# How it says that an array is not a number, which one element was before 2.4.
_NO_NUMBER = (
    "only 0-dimensional arrays can be converted to Python scalars",
    "%d format: a real number is required, not numpy.ndarray",
    "setting an array element with a sequence.",
)
# How it says, since 2.0, that a type is too small for a number of Python.
_TOO_LARGE = "out of bounds for"


@functools.cache
def taking_more(name: str, function: _Function) -> _Function:
    """Return the function of that name, which takes its old arguments, too."""
    changes, old_call = _changes_of(name, function), _OLD_CALLS.get(name)

    @functools.wraps(function)
    def taking(*args: Any, **named: Any) -> Any:
        for old in changes.keys() & named.keys():
            value = named.pop(old)
            if changes[old].new:
                named[changes[old].new] = value
        if old_call is None:
            return function(*args, **named)
        return old_call(function, *args, **named)

    return not_converted(taking)


def not_converted(function: _Any) -> _Any:
    """Tell AutoGraph to call a function as it is; TensorFlow is not imported."""
    assign(function, autograph_info__={})
    return function


def way_out(error: BaseException) -> str:
    """Return what to do about an error of a refused value; empty for other errors."""
    said, version = str(error), np.lib.NumpyVersion(np.__version__)
    if version >= "2.0.0" and isinstance(error, OverflowError) and _TOO_LARGE in said:
        where = "" if sys.version_info < (3, 13) else ", on a Python up to 3.12,"
        return (
            f"NumPy {np.__version__} does not accept a number that the other "
            "operand's type cannot hold, as it did before 2; `pip install "
            f'"numpy<2"`{where} brings that back'
        )
    if version < "2.4.0" or numpy_arrays.UNEQUAL in said:
        return ""
    if not any(message in said for message in _NO_NUMBER):
        return ""
    return (
        f"NumPy {np.__version__} does not convert an array of one element to a "
        'number, as it did before 2.4; `pip install "numpy<2.4"` brings that back'
    )


def _changes_of(name: str, function: _Function) -> dict[str, Change]:
    """Return the renamed arguments of a function, unless it takes the old names."""
    # `_reading` takes those of `numpy.fromstring`.
    changes = {} if name == old_values.READING else OF_FUNCTIONS.get(name, {})
    with contextlib.suppress(ValueError):  # it does not tell its arguments
        parameters = signature(function).parameters.keys()
        changes = {} if changes.keys() <= parameters else changes
    return changes


def _of_any(function: _Function, /, *args: Any, **named: Any) -> Any:
    """Call the function of a sequence with any iterable."""
    args = (*map(_without_iterator, args[:1]), *args[1:])
    return function(*args, **{k: _without_iterator(v) for k, v in named.items()})


def _without_iterator(value: Any) -> Any:
    is_iterator = hasattr(value, "__iter__") and not hasattr(value, "__getitem__")
    return list(value) if is_iterator else value


def _of_floats(function: _Function, /, *args: Any, **named: Any) -> Any:
    """Call the function of whole numbers with floats that are whole."""
    try:
        return function(*args, **named)
    except TypeError:
        pass  # a program may call it often, and seldom has a float
    return function(*map(whole, args), **{k: whole(v) for k, v in named.items()})


def whole(value: Any) -> Any:
    """Return a float that is whole as an `int`, and any other value as it is."""
    is_whole = isinstance(value, float | np.floating) and value.is_integer()
    return int(value) if is_whole else value


def _reading(
    function: _Function,
    /,
    string: object,
    dtype: Any = float,
    count: int = -1,
    sep: str = "",
    **more: Any,
) -> Any:
    """`numpy.fromstring`, which reads bytes as numbers where it has no separator."""
    if sep:
        return function(string, dtype, count, sep=sep, **more)
    data = string.encode() if isinstance(string, str) else string
    return np.frombuffer(data, dtype, count).copy()


def _loading(
    current: str, function: _Function, /, stream: object, *loader: Any, **named: Any
) -> Any:
    """Call the function of a stream and a loader, which does without a loader."""
    if loader or named:
        return function(stream, *loader, **named)
    return pkgutil.resolve_name(current)(stream)


def _of_unequal_lists(function: _Function, /, *args: Any, **named: Any) -> Any:
    """Call the function of arrays with lists of rows of unequal length."""
    try:
        return function(*args, **named)
    except ValueError as e:
        if numpy_arrays.UNEQUAL not in str(e):
            raise
    by_name = {name: _as_array(value) for name, value in named.items()}
    return function(*map(_as_array, args), **by_name)


def _as_array(value: object) -> Any:
    return numpy_arrays.array(value) if isinstance(value, list | tuple) else value


# Function -> what calls it with its old arguments too.
_OLD_CALLS: dict[str, _Function] = {
    **dict.fromkeys(old_values.STACKING, _of_any),
    **dict.fromkeys(old_values.WHOLE, _of_floats),
    old_values.READING: _reading,
    **dict.fromkeys(_OF_LISTS, _of_unequal_lists),
    **dict.fromkeys(old_values.OF_ARRAYS, numpy_arrays.of_unequal_rows),
    **{
        name: functools.partial(_loading, current)
        for name, current in old_values.LOADING.items()
    },
    **{f"random.{n}": call for n, call in restored_randomness.OLD_CALLS.items()},
}
# Every function that takes old arguments again.
FUNCTIONS: frozenset[str] = frozenset({*_OLD_CALLS, *OF_FUNCTIONS})
