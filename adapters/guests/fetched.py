"""Guesses, before a step is traced, which of its tensors a hook will fetch.

An extra tensor costs nothing: the step returns it and nobody takes it. A missing
tensor costs a second trace of the step.
"""

from __future__ import annotations

import contextlib
import re
import types
from collections.abc import Iterator, Mapping

from hookbridge.ground.lifecycle.overrides import overrides
from hookbridge.ground.protocols import Hook

_NAME = re.compile(r"[A-Za-z0-9.][\w./>-]*:\d+")
# How many nested containers of a hook's attributes are searched for names.
_DEPTH = 3


def may_fetch_loss(hook: Hook) -> bool:
    """Return whether a hook may fetch the loss of the batch, by whatever name."""
    if _is_of_tensorflow(type(hook)):
        return type(hook).__name__ in ("LoggingTensorHook", "NanTensorHook")
    return overrides(hook, "before_run")


def tensor_names(hook: Hook) -> frozenset[str]:
    """Return the tensor names in the attributes and in the code of a hook."""
    return frozenset(s for s in _strings(hook) if _NAME.fullmatch(s))


def _is_of_tensorflow(cls: type) -> bool:
    return cls.__module__.startswith(("tensorflow.", "tensorflow_estimator."))


def _strings(hook: Hook) -> Iterator[str]:
    for value in getattr(hook, "__dict__", {}).values():
        yield from _strings_in_value(value, _DEPTH)
    for cls in type(hook).__mro__:
        if cls is not object and not _is_of_tensorflow(cls):
            for value in vars(cls).values():
                yield from _strings_in_value(value, _DEPTH)


def _strings_in_value(value: object, depth: int) -> Iterator[str]:
    """Yield the strings in a value, in its parts, and in the code of functions."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, types.FunctionType):
        yield from _strings_in_code(value.__code__)
        if depth:
            for cell in value.__closure__ or ():
                with contextlib.suppress(ValueError):  # an empty cell
                    yield from _strings_in_value(cell.cell_contents, depth - 1)
    elif depth and isinstance(value, Mapping):
        for part in value.items():
            yield from _strings_in_value(part, depth - 1)
    elif depth and isinstance(value, (list, tuple, set, frozenset)):
        for part in value:
            yield from _strings_in_value(part, depth - 1)


def _strings_in_code(code: types.CodeType) -> Iterator[str]:
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _strings_in_code(constant)
        else:
            yield from _strings_in_value(constant, _DEPTH)
