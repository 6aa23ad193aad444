"""Waits for scheduled steps, and finds out why one failed."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from hookbridge import compat, errors
from hookbridge.adapters.hooked_loop.monitored import END_OF_DATA
from hookbridge.adapters.parameter_server.preemption import patient_join
from hookbridge.adapters.parameter_server.stops import ClusterFailure
from hookbridge.adapters.parameter_server.values import StepValue
from hookbridge.patching import InstanceMethods


class ScheduledSteps:
    """The steps that the coordinator of one `fit` was given.

    Attributes:
      count: the global step when all of them are done.
      is_broken: whether a step failed because of the cluster.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self._coordinator = model._cluster_coordinator
        self._eager_mode = compat.private("eager_mode")
        self._results_known = False  # whether metrics were computed here before
        self.count = 0
        self.is_broken = False
        # A step that hangs must not hold up a process that was asked to end.
        join = patient_join(self._coordinator)
        self._join = InstanceMethods(self._coordinator, {"join": join})
        self._join.install()

    def wait(self) -> None:
        """Waits until no step is in flight.

        Raises:
          Exception: what `failure` makes of the error of a step.
        """
        try:
            self._coordinator.join()
        except Exception as e:
            raise self.failure(e) from e

    def failure(self, error: BaseException) -> BaseException:
        """The error to raise when a step, or the scheduling of one, failed."""
        if isinstance(error, (errors.HookBridgeError, ClusterFailure)):
            return error
        if isinstance(error, tf.errors.CancelledError):
            # Another step failed first; its error tells the reason.
            try:
                self._coordinator.join()
            except Exception as first:
                error = first
        if isinstance(error, END_OF_DATA):
            return error
        self.is_broken = True
        return ClusterFailure(error)

    def load(self, value: StepValue) -> tuple[Any, dict[str, Any]] | None:
        """Logs and tensors of a step; None if the data ended before it.

        Raises:
          Exception: what `failure` makes of another error of the step.
        """
        try:
            with self._eager_mode():  # hooks run under a graph
                found = value.load()
        except Exception as e:
            failure = self.failure(e)
            if not isinstance(failure, END_OF_DATA):
                raise failure from e
            self.count -= value.steps
            return None
        if not self._results_known:
            self._results_known = True
            with self._eager_mode():
                # Keras computes results at the end of an epoch. The first computation
                # hangs while a worker does not respond; later ones do not.
                for metric in self._model.metrics:
                    metric.result()
        return found

    def leave(self) -> None:
        """Gives the coordinator its own `join` back."""
        self._join.remove()
