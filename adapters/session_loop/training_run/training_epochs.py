"""The epochs of a training run: their events and their logs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from absl import logging

from hookbridge.adapters.live_model.rates import LiveRates
from hookbridge.adapters.session_graph.log_sources import LogSource
from hookbridge.adapters.session_loop.shared.epoch_logs import EpochLogs
from hookbridge.adapters.session_loop.training_run.epoch_clock import EpochClock
from hookbridge.adapters.state.loop_state import LoopState, Means
from hookbridge.ground.protocols import Context, Session


class TrainingEpochs:
    """Begins and ends the epochs of a training run."""

    def __init__(
        self,
        steps_per_epoch: int | None,
        sources: Sequence[LogSource],
        rates: LiveRates,
        deliver: Callable[..., None],
        validate: Callable[[int], Mapping[str, Any]],
        without_effect: Callable[[], Context],
    ) -> None:
        self.clock: EpochClock = EpochClock(steps_per_epoch)
        self.logs: EpochLogs = EpochLogs(sources)
        self.last_logs: dict[str, Any] = {}  # what the last `on_epoch_end` reported
        self._length = steps_per_epoch
        self._rates = rates
        self._deliver = deliver
        self._validate = validate
        # A context in which events are delivered and their effects undone.
        self._without_effect = without_effect
        # The state of the epoch that a restart or a recovery interrupted.
        self._interrupted: LoopState | None = None
        # The step of a worker's state may be later than that of its checkpoint; epochs
        # that had ended by then do not begin again.
        self._state_step = 0
        # The epoch that comes next; None where a restart or a recovery may skip some.
        self._next: int | None = None

    def forget(self) -> None:
        """Go back to before the run began."""
        self.clock = EpochClock(self._length)
        self.last_logs = {}
        self._interrupted, self._next, self._state_step = None, None, 0
        self._rates.begin_run_again()

    def begin(self, step: int, session: Session) -> None:
        """Begin the epoch of a step."""
        self.clock.begin(max(step, self._state_step))
        self.warn_of_missed(self.clock.number)
        self._next = self.clock.number + 1
        has_begun = self._has_begun_before
        self._begin_means(session)
        with contextlib.ExitStack() as undoing:
            if has_begun:
                undoing.enter_context(self._rates.undone())
                undoing.enter_context(self._without_effect())
            self._deliver("on_epoch_begin", self.clock.number, {})

    def warn_of_missed(self, number: int) -> None:
        """Warn of the epochs before `number` that had no step in this process."""
        first, end = self._next, number - 1
        self._next = None
        if first is None or first > end:
            return
        which = f"epoch {first}" if first == end else f"epochs {first} to {end}"
        logging.warning(
            "hookbridge: this process made no step in %s: other workers, or runs "
            "through the raw session, moved the global step past it. Its callbacks "
            "got no events for it. Set steps_per_epoch higher than the current %s.",
            which,
            self._length,
        )

    @property
    def _has_begun_before(self) -> bool:
        """Return whether the epoch is the one that an earlier run has not ended."""
        interrupted = self._interrupted
        if interrupted is None or interrupted.means is None:
            return False
        return self.clock.number_of(interrupted.step) == self.clock.number

    def _begin_means(self, session: Session) -> None:
        state, self._interrupted = self._interrupted, None
        self.logs.begin_epoch(session, None if state is None else state.means)

    def end(self) -> None:
        """End the open epoch with its validation."""
        self.clock.is_open = False
        logs = dict(self.logs.current)
        if self._length:
            logs.update(self._validate(self.clock.number))
        self.last_logs = dict(logs)
        self._deliver("on_epoch_end", self.clock.number, logs)

    def state(self, step: int, session: Session) -> LoopState:
        """Return what belongs to a checkpoint beside the callbacks' own state."""
        means: Means | None = None
        if self.clock.is_open:
            means = Means(self.logs.sums(), self.logs.metrics(session))
        elif self._interrupted is not None:
            # Saved before the first step after a restart: the epoch goes on there.
            means = self._interrupted.means
        return LoopState(
            step, self._rates.state(), means, self.clock.origin, self._length
        )

    def go_on_from(
        self,
        state: LoopState | None,
        step: int,
        session: Session,
        *,
        went_back: bool,
        is_recovery: bool,
    ) -> None:
        """Go on after a restart or a recovery, with the state that was saved.

        Args:
          state: what was saved, or None.
          step: the global step of the new session.
          session: the new session.
          went_back: whether the session before it had made more steps.
          is_recovery: whether this process had a session before.
        """
        if state is not None:
            if is_recovery:
                self._rates.forget_fed()
            self._rates.restore(state.rates)
        self._interrupted, self._next = state, None
        self._state_step = 0 if state is None else state.step
        origin = None if state is None else state.origin
        self.clock.go_on(step, origin, went_back=went_back)
        if self.clock.is_open:
            if went_back:
                self._begin_means(session)
        elif (
            state is not None
            and state.means is not None
            and self.clock.number_of(state.step) < self.clock.number_of(step)
        ):
            # The epoch's end was not delivered before the checkpoint: the process was
            # killed in its last events, or other workers have moved the global step
            # on into the next epoch.
            if state.is_in_step or _had_steps(state.means.sums):
                self.begin(state.step, session)
                self.logs.fill(session)
                self.end()
            self.clock.is_open = False


def _had_steps(sums: Mapping[str, tuple[float, float]]) -> bool:
    """Return whether steps were made in the epoch of these sums and weights.

    Without any mean nothing tells it; an open epoch has had some then.
    """
    return not sums or any(weight for _, weight in sums.values())
