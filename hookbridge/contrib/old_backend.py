"""What `keras.backend` and `keras.legacy` of Keras 2.3 had, and nothing has today."""

from __future__ import annotations

import builtins
import importlib
import types
from collections.abc import Callable
from typing import Any

from hookbridge.contrib.private_modules import keras2_package

# The order of an image's axes -> what Keras 1 called it.
_ORDERINGS = {"channels_first": "th", "channels_last": "tf"}


def _tensorflow() -> Any:
    return importlib.import_module("tensorflow").compat.v1


def _backend() -> Any:
    return importlib.import_module(f"{keras2_package()}.backend")


def image_dim_ordering() -> str:
    """`keras.backend.image_dim_ordering`: "tf" or "th"."""
    return _ORDERINGS[_backend().image_data_format()]


def set_image_dim_ordering(dim_ordering: str) -> None:
    """`keras.backend.set_image_dim_ordering`."""
    formats = {old: current for current, old in _ORDERINGS.items()}
    if dim_ordering not in formats:
        raise ValueError(f"Unknown dim_ordering: {dim_ordering!r}; expected tf or th")
    _backend().set_image_data_format(formats[dim_ordering])


def is_variable(x: object) -> bool:
    """`keras.backend.is_variable`."""
    return isinstance(x, importlib.import_module("tensorflow").Variable)


def slice(x: object, start: object, size: object) -> Any:
    """`keras.backend.slice`: a part of a tensor, by its place and size."""
    tf = _tensorflow()
    if isinstance(start, int | builtins.list | tuple):
        start = tf.convert_to_tensor(start)
    return tf.slice(x, start, size)


def size(x: Any, name: str | None = None) -> Any:
    """`keras.backend.size`: the number of elements, as a tensor."""
    return _tensorflow().size(x, name=name)


class _Interfaces(types.ModuleType):
    """`keras.legacy.interfaces`: its decorators leave what they decorate as it is.

    They let a function take the arguments of Keras 1.
    """

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if not name.startswith(("legacy_", "generate_legacy_")):
            raise AttributeError(name)
        if name.startswith("legacy_"):
            return _unchanged
        return lambda *args, **named: _unchanged


def _unchanged(function: object) -> Any:
    return function


interfaces: types.ModuleType = _Interfaces("keras.legacy.interfaces")
