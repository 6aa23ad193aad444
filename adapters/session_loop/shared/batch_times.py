"""Keras 2's warning of batch methods that take longer than the batch itself."""

from __future__ import annotations

import sys
import time
from collections.abc import Collection, Mapping, Sequence
from statistics import fmean
from typing import Any

import tensorflow as tf
from absl import logging

from hookbridge.adapters.guests.kinds import Flavour
from hookbridge.ground import compat

# After how many batches Keras compares; the first one of each epoch does not count.
_BATCHES = 5
_MODES = ("train", "test", "predict")


class BatchTimes:
    """Measures batches and batch methods, until it has compared them once.

    Args:
      calls: the methods of each event. Batches that no method hears of do not count.
    """

    def __init__(self, calls: Mapping[str, Sequence[Any]]) -> None:
        self._modes = [
            mode for mode in _MODES if any(calls[event] for event in _events(mode))
        ]
        self._methods: dict[str, list[float]] = {}
        self._batches: list[float] = []
        self._batch_began: float | None = None
        self._called = 0.0
        self.is_over: bool = not self._modes

    def measures(self, event: str) -> bool:
        """Return whether an event is measured, whether or not it has methods."""
        return not self.is_over and any(event in _events(mode) for mode in self._modes)

    def before(self, event: str, batch: int) -> None:
        """Note that the methods of an event are called now.

        Args:
          event: the callback's method, such as `on_train_batch_end`.
          batch: the number of the batch; the time of batch 0 is left out.
        """
        self._called = time.time()
        if event.endswith("_end") and batch >= 1 and self._batch_began is not None:
            self._batches.append(self._called - self._batch_began)

    def after(self, event: str) -> None:
        """Note that all methods of the event have returned."""
        if self.is_over:  # in an evaluation that one of them has made
            return
        now = time.time()
        self._methods.setdefault(event, []).append(now - self._called)
        if event.endswith("_begin"):
            self._batch_began = now
        elif len(self._batches) >= _BATCHES:
            self._compare(event)

    def _compare(self, last_event: str) -> None:
        """Warn as `CallbackList` of Keras 2 does, in its words."""
        self.is_over = True
        batch_time = fmean(self._batches)
        for event in (last_event.replace("_end", "_begin"), last_event):
            hook_time = fmean(self._methods.get(event, [0.0]))
            if hook_time > batch_time:
                logging.warning(
                    "Callback method `%s` is slow compared to the batch time (batch "
                    "time: %.4fs vs `%s` time: %.4fs). Check your callbacks.",
                    event,
                    batch_time,
                    event,
                    hook_time,
                )


def are_measured(callbacks: Collection[Any], flavours: Collection[Flavour]) -> bool:
    """Return whether a `fit` with these callbacks would measure its batches.

    Keras 3 does not, and Keras 2 does if a callback is not of a class of its own.

    Args:
      callbacks: those of the session.
      flavours: the Keras versions that they were written for.
    """
    if "keras2" not in flavours and (flavours or compat.is_keras3(tf.keras)):
        return False
    of_keras: set[str] = set()
    for keras in compat.keras_flavours():
        if not compat.is_keras3(keras):
            of_keras |= vars(sys.modules[keras.callbacks.Callback.__module__]).keys()
    return any(type(callback).__name__ not in of_keras for callback in callbacks)


def _events(mode: str) -> tuple[str, str]:
    return f"on_{mode}_batch_begin", f"on_{mode}_batch_end"
