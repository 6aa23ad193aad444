"""Loops and single steps that a callback starts on the model of a running loop."""

from __future__ import annotations

import contextlib
import sys
import traceback
import weakref
from collections.abc import Iterator
from typing import Any, Generic, Protocol, TypeVar

LOOPS = ("fit", "evaluate", "predict")
# Methods that start a loop, or a single step with the function of a loop.
STARTERS = (*LOOPS, "train_on_batch", "test_on_batch", "predict_on_batch")


def is_running(model: Any) -> bool:
    """Whether the caller runs inside a loop of `model`.

    The stack frames are searched, since a loop that ends by an exception tells nobody.
    """
    return any(
        frame.f_code.co_name in LOOPS
        and frame.f_code.co_argcount
        and frame.f_locals.get(frame.f_code.co_varnames[0]) is model
        for frame, _ in traceback.walk_stack(sys._getframe(1))
    )


class HasModel(Protocol):
    """A run that holds the loops of a model.

    Attributes:
      is_over: whether the model has its own methods again.
      is_aside: whether a loop inside the run's loop holds the model.
    """

    is_over: bool
    is_aside: bool

    def leave(self) -> None:
        """Gives the model its own methods back."""


_Run = TypeVar("_Run", bound=HasModel)


class Innermost(Generic[_Run]):
    """Model -> the run that holds its loops: the innermost one, pending or going on."""

    def __init__(self) -> None:
        self._runs: weakref.WeakKeyDictionary[Any, _Run] = weakref.WeakKeyDictionary()

    def of(self, model: Any) -> _Run | None:
        """The run that holds a model, or None."""
        return self._runs.get(model)

    def take(self, model: Any, run: _Run) -> None:
        """From now on `run` holds the model."""
        self._runs[model] = run

    def give_back(self, model: Any, run: _Run) -> None:
        """From now on `run` does not hold the model."""
        if self._runs.get(model) is run:
            del self._runs[model]

    @contextlib.contextmanager
    def aside(self, model: Any, run: _Run) -> Iterator[None]:
        """Leaves the model to a loop inside that of `run`, which may have hooks too."""
        self._runs.pop(model, None)
        run.is_aside = True
        try:
            yield
        finally:
            inner = self._runs.get(model)
            if inner is not None:
                inner.leave()
            if not run.is_over:
                self._runs[model] = run
                run.is_aside = False
