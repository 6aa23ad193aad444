"""The epochs of a training run: their events, their logs and their validation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from hookbridge.adapters.session_graph.logs import LogSource
from hookbridge.adapters.session_loop import values
from hookbridge.adapters.session_loop.epoch_logs import EpochLogs
from hookbridge.adapters.session_loop.epochs import EpochClock
from hookbridge.adapters.session_loop.validation_run import Validated, ValidationRun
from hookbridge.adapters.session_state.loop_state import LoopState


class Trained(Validated, Protocol):
    """What the epochs ask of their training run."""

    step: int

    @property
    def went_back(self) -> bool:
        """Whether the session is at an earlier step than before its recovery."""

    def validates_here(self) -> bool:
        """Whether a validation in mid-training runs in this process."""


class TrainingEpochs:
    """Begins and ends the epochs of a training run.

    Args:
      run: the training run; it makes its model before training begins.
      sources: the entries of `logs`.

    Attributes:
      clock: which epoch a step belongs to.
      logs: the running values of the open epoch.
      validation: the `ValidationRun`, which is false if there is no validation.
      last_logs: what the last `on_epoch_end` reported.
    """

    def __init__(self, run: Trained, sources: Sequence[LogSource]) -> None:
        self._run = run
        self.clock = EpochClock(run.config.steps_per_epoch)
        self.logs = EpochLogs(sources)
        self.validation = ValidationRun(run)
        self.last_logs: dict[str, Any] = {}
        # The state of the epoch that a restart or a recovery interrupted.
        self._kept: LoopState | None = None
        # The step of a worker's state may be later than that of its checkpoint; epochs
        # that had ended by then do not begin again.
        self._ahead = 0

    def begin(self) -> None:
        """Begins the epoch of the run's step."""
        self.clock.begin(max(self._run.step, self._ahead))
        self._begin_means()
        self._run.model.live_link.rates.begin_epoch()
        self._run.deliver("on_epoch_begin", self.clock.number, {})

    def _begin_means(self) -> None:
        kept, self._kept = self._kept, None
        self.logs.begin_epoch(self._run.session, kept)

    def end(self) -> None:
        """Ends the open epoch with its validation."""
        run = self._run
        self.clock.is_open = False
        self.logs.catch_up()
        logs = dict(self.logs.current)
        if self.validation and run.config.steps_per_epoch and run.validates_here():
            logs.update(values.as_val_logs(self.validation.run()))
        self.last_logs = dict(logs)
        run.deliver("on_epoch_end", self.clock.number, logs)

    # --- state ---------------------------------------------------------------

    def document(self) -> dict[str, Any]:
        """What belongs to a checkpoint beside the callbacks' own state."""
        is_open, run = self.clock.is_open, self._run
        return LoopState(
            run.step,
            run.model.live_link.rates.state(),
            self.logs.sums() if is_open else None,
            self.logs.metrics(run.session) if is_open else {},
            self.clock.origin,
        ).document()

    def go_on_from(self, state: LoopState | None) -> None:
        """Goes on where the session is, after a restart or a recovery.

        Args:
          state: the state that was saved there, or None if there is none.
        """
        if state is not None:
            self._run.model.live_link.rates.restore(state.rates)
        self._kept = state
        self._ahead = 0 if state is None else state.step
        self.clock.go_on(self._run.step, None if state is None else state.origin)
        if self.clock.is_open:
            if state is not None or self._run.went_back:
                self._begin_means()
        elif state is not None and state.sums is not None:
            self._end_interrupted(state.step)

    def _end_interrupted(self, step: int) -> None:
        """Ends an epoch whose end was not delivered before the checkpoint.

        The process was killed in the last events of the epoch, or other workers have
        moved the global step on into the next one.

        Args:
          step: the global step of the saved state; it is within the epoch.
        """
        run = self._run
        if self.clock.number_of(step) >= self.clock.number_of(run.step):
            return
        now, run.step = run.step, step
        self.begin()
        run.step = now
        if self.logs.fill(run.session):
            self.end()
        self.clock.is_open = False
