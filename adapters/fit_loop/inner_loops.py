"""Loops and single steps that a callback starts on the model of a running loop."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

LOOPS = ("fit", "evaluate", "predict")
# What starts them. A step on a batch uses the function of the loop, as a loop does.
STARTERS = (*LOOPS, "train_on_batch", "test_on_batch", "predict_on_batch")

_MISSING = object()


def is_running(model: Any) -> bool:
    """Whether this is called from within a loop of `model`.

    A loop that an exception has ended tells nobody; it is just no longer there.
    """
    frame: Any = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if (
            code.co_name in LOOPS
            and code.co_argcount
            and frame.f_locals.get(code.co_varnames[0]) is model
        ):
            return True
        frame = frame.f_back
    return False


class InstanceMethods:
    """Methods in the place of a model's own, on the instance and for a while.

    Args:
      model: the model.
      methods: `{name: method}`.
    """

    def __init__(self, model: Any, methods: Mapping[str, Callable[..., Any]]) -> None:
        self._attributes = vars(model)
        self._methods = methods
        self._before: dict[str, Any] = {}

    def install(self) -> None:
        """Puts the methods in place."""
        for name, method in self._methods.items():
            self._before[name] = self._attributes.get(name, _MISSING)
            self._attributes[name] = method

    def remove(self) -> None:
        """Puts back what was there."""
        while self._before:
            name, before = self._before.popitem()
            if before is _MISSING:
                self._attributes.pop(name, None)
            else:
                self._attributes[name] = before
