"""Loops and single steps that a callback starts on the model of a running loop."""

from __future__ import annotations

import contextlib
import sys
import traceback
import weakref
from collections.abc import Iterator
from typing import Any, Generic, Protocol, TypeVar

LOOPS = ("fit", "evaluate", "predict")
# What starts them. A step on a batch uses the function of the loop, as a loop does.
STARTERS = (*LOOPS, "train_on_batch", "test_on_batch", "predict_on_batch")


def is_running(model: Any) -> bool:
    """Whether this is called from within a loop of `model`.

    The stack of frames is asked, since a loop that an exception ends tells nobody.
    """
    return any(
        frame.f_code.co_name in LOOPS
        and frame.f_code.co_argcount
        and frame.f_locals.get(frame.f_code.co_varnames[0]) is model
        for frame, _ in traceback.walk_stack(sys._getframe(1))
    )


class HasModel(Protocol):
    """What has the loops of a model.

    Attributes:
      is_over: whether the model has its own methods again.
      is_aside: whether a loop inside this one has the model.
    """

    is_over: bool
    is_aside: bool

    def leave(self) -> None:
        """Gives the model its own methods back."""


_Run = TypeVar("_Run", bound=HasModel)


class Innermost(Generic[_Run]):
    """Model -> what has its loops: the innermost run, pending or going on."""

    def __init__(self) -> None:
        self._runs: weakref.WeakKeyDictionary[Any, _Run] = weakref.WeakKeyDictionary()

    def of(self, model: Any) -> _Run | None:
        """What has a model, or None."""
        return self._runs.get(model)

    def take(self, model: Any, run: _Run) -> None:
        """From now on `run` has the model."""
        self._runs[model] = run

    def give_back(self, model: Any, run: _Run) -> None:
        """`run` has the model no longer."""
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
