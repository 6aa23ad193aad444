"""Waits for scheduled steps, and finds out why one failed."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from hookbridge import errors
from hookbridge.adapters.hooked_loop.monitored import ClusterFailure
from hookbridge.adapters.parameter_server.exit import JOIN_POLL_SECS, PREEMPTED
from hookbridge.adapters.parameter_server.step_values import StepValue
from hookbridge.ground import compat
from hookbridge.ground.patching import Patches
from hookbridge.ground.protocols import KerasModel
from hookbridge.ground.step_errors import END_OF_DATA


class StepsInFlight:
    """The steps that the coordinator of one `fit` was given."""

    def __init__(self, model: KerasModel) -> None:
        self._model = model
        self._coordinator = model._cluster_coordinator
        self._eager_mode = compat.private("eager_mode")
        self._results_known = False  # whether metrics were computed here before
        self._first_error: BaseException | None = None
        self.count: int = 0
        self.delivered: int = 0
        self.is_broken: bool = False
        # A step that hangs must not hold up a process that was asked to end.
        self._join = Patches(self._coordinator, {"join": self._patient_join})
        self._join.install()

    def _patient_join(self) -> None:
        """Join as the coordinator does, for Keras too, but give up steps that hang."""
        try:
            PREEMPTED.wait_until(self._coordinator.done, JOIN_POLL_SECS)
        except Exception as e:
            if not isinstance(e, tf.errors.CancelledError):
                self._first_error = self._first_error or e
            raise

    def wait(self) -> None:
        """Wait until no step is in flight."""
        try:
            self._coordinator.join()
        except Exception as e:
            raise self.error_to_raise(e) from e

    def error_to_raise(self, error: BaseException) -> BaseException:
        """Return the error to raise when a step, or the scheduling of one, failed."""
        if isinstance(error, (errors.HookBridgeError, ClusterFailure)):
            return error
        if isinstance(error, tf.errors.CancelledError):
            # Another step failed first; its error tells the reason. The coordinator
            # raises it once, maybe in a call of Keras.
            try:
                self._coordinator.join()
            except Exception as first:
                error = first
            error = self._first_error or error
        self._first_error = self._first_error or error
        if isinstance(error, END_OF_DATA):
            return error
        self.is_broken = True
        return ClusterFailure(error)

    def load(self, value: StepValue) -> tuple[Any, dict[str, Any]] | None:
        """Return logs and tensors of a step; None if the data ended before it."""
        if value.is_lost:
            return None
        is_new = not value.is_loaded
        try:
            with self._eager_mode():  # hooks run under a graph
                result = value.load()
        except Exception as e:
            failure = self.error_to_raise(e)
            if not isinstance(failure, END_OF_DATA):
                raise failure from e
            value.is_lost = True
            self.count -= value.steps
            return None
        if is_new:
            self.delivered += 1
        if not self._results_known:
            self._results_known = True
            with self._eager_mode():
                # Keras computes results at the end of an epoch. The first computation
                # hangs while a worker does not respond; later ones do not.
                for metric in self._model.metrics:
                    metric.result()
        return result

    def leave(self) -> None:
        self._join.remove()
