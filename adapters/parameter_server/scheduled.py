"""Steps that were scheduled: how they are waited for, and why one failed."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from hookbridge import compat, errors
from hookbridge.adapters.parameter_server.preemption import patient_join
from hookbridge.adapters.parameter_server.stops import ClusterFailure
from hookbridge.adapters.parameter_server.values import StepValue
from hookbridge.patching import InstanceMethods

END_OF_DATA = (StopIteration, tf.errors.OutOfRangeError)


class ScheduledSteps:
    """What the coordinator of one `fit` was given to do.

    Attributes:
      count: the global step when all of them are done.
      is_broken: whether one failed because of the cluster.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self._coordinator = model._cluster_coordinator
        self._eager_mode = compat.private("eager_mode")
        self._results_known = False  # whether metrics were computed here before
        self.count = 0
        self.is_broken = False
        # A step that stands still must not hold up a process that was asked to end.
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
        """What to raise where a step, or scheduling one, failed with `error`."""
        if isinstance(error, (errors.HookBridgeError, ClusterFailure)):
            return error
        if isinstance(error, tf.errors.CancelledError):
            # Another step failed; that one says why.
            try:
                self._coordinator.join()
            except Exception as first:
                error = first
        if isinstance(error, END_OF_DATA):
            return error
        self.is_broken = True
        return ClusterFailure(error)

    def load(self, value: StepValue) -> tuple[Any, dict[str, Any]] | None:
        """Logs and tensors of a step; None where the data ended before it.

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
                # Keras does so at the end of an epoch. The first time hangs while a
                # worker stands still, later ones do not.
                for metric in self._model.metrics:
                    metric.result()
        return found

    def leave(self) -> None:
        """Gives the coordinator its own `join` back."""
        self._join.remove()
