"""Sets the learning rate by step."""

from __future__ import annotations

import math
from collections.abc import Callable

import tensorflow as tf

from hookbridge import errors
from hookbridge.adapters.parameter_server.ps_refusals import uses_parameter_servers
from hookbridge.ground.arguments import parameters_of, shown, with_arguments
from hookbridge.ground.protocols import Logs
from hookbridge.jobs.callbacks.ready_made import ReadyMade


class LearningRateScheduler(ReadyMade):
    """Sets the learning rate of each step.

    Each update uses the value of its step, on parameter servers too. In a `fit`
    under `ParameterServerStrategy` the callback waits for the steps under way before
    it changes the rate. So a schedule that changes rarely costs nothing there; one that
    changes in each step makes the workers take turns. Its role is `"worker"`: in a
    session each worker sets the rate of its updates.

    Args:
      schedule: called with the number of updates that the model has had, from 0;
        returns the learning rate of the next one. It is called once before each
        training step, or execution of several, on the thread of the loop.

    Raises:
      errors.InvalidArgumentError: `schedule` is not a function, its first argument is
        called `epoch`, as in Keras's `LearningRateScheduler`, or it returned no number
        before a step.
    """

    # For Keras 2: this callback does not read `logs`, and must run before the step.
    _supports_tf_logs = True

    def __init__(self, schedule: Callable[[int], float]) -> None:
        super().__init__("worker")
        self._schedule = with_arguments("schedule", schedule, "step")
        _refuse_schedule_by_epoch(schedule)
        # The step with which the epoch began; None before the first one.
        self._first: int | None = None
        self._rate: float | None = None

    def on_train_begin(self, logs: Logs = None) -> None:
        self._first = self._rate = None

    def on_train_batch_begin(self, batch: int, logs: Logs = None) -> None:
        is_ahead = uses_parameter_servers(self.model)
        rate = self._rate_of(self._scheduled(batch) if is_ahead else self.global_step())
        if rate != self._rate or not is_ahead:
            if is_ahead:
                # This always returns the one coordinator of a strategy.
                strategy = self.model.distribute_strategy
                tf.distribute.coordinator.ClusterCoordinator(strategy).join()
            self.model.optimizer.learning_rate = rate
        self._rate = rate

    def _scheduled(self, batch: int) -> int:
        """Return how many updates the model will have had after the steps under way.

        `batch` counts them, also where one call makes several steps.
        """
        if batch == 0 or self._first is None:  # no step is under way: Keras has waited
            self._first = self.global_step() - batch
        return self._first + batch

    def _rate_of(self, step: int) -> float:
        """Return the rate of the schedule at a step; refuse what is not a number."""
        rate = self._schedule(step)
        try:
            value = math.nan if isinstance(rate, (str, bytes)) else float(rate)
        except (TypeError, ValueError):
            value = math.nan
        if not math.isfinite(value):
            raise errors.InvalidArgumentError(
                f"The schedule of `LearningRateScheduler` returned {shown(rate)} for "
                f"step {step}; expected a number."
            )
        return value


def _refuse_schedule_by_epoch(schedule: Callable[[int], float]) -> None:
    """Refuse a schedule by epoch, which Keras's callback of this name takes."""
    arguments = list(parameters_of(schedule))
    if arguments[:1] == ["epoch"]:
        raise errors.InvalidArgumentError(
            f"`schedule` has the arguments {', '.join(arguments)}; expected one that "
            "is called with the step. A schedule by epoch is for "
            "`tf.keras.callbacks.LearningRateScheduler`, which runs in either loop."
        )
