"""The epochs of a training run: their events, their logs, and who ends the last."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hookbridge.adapters.live_model.rates import LiveRates
from hookbridge.adapters.session_graph.log_sources import LogSource
from hookbridge.adapters.session_loop.epoch_logs import EpochLogs
from hookbridge.adapters.session_state.loop_state import LoopState
from hookbridge.ground.protocols import Context, KerasModel, Session


class EpochClock:
    """Which epoch a step belongs to."""

    def __init__(self, steps_per_epoch: int | None) -> None:
        self._length = steps_per_epoch
        self.number: int = 0  # of the present epoch
        # The global step at which the epoch begins, even if this run entered it later.
        self.start: int = 0
        # The global step at which it is over; infinity if it is endless.
        self.stop: float = math.inf
        self.is_open: bool = False  # whether it has begun and not ended
        self.batches: int = 0  # how many of its steps had events so far
        # An epoch and the step at which it began: epochs are counted from there. It
        # moves when an epoch ends within its steps.
        self.origin: tuple[int, int] = (0, 0)

    def number_of(self, step: int) -> int:
        """The epoch that a step belongs to."""
        number, start = self.origin
        return number + ((step - start) // self._length if self._length else 0)

    def begin(self, step: int) -> None:
        """Opens the epoch of a step."""
        self.number = self.number_of(step)
        first, start = self.origin
        self.start = start + (self.number - first) * (self._length or 0)
        if self._length is not None:
            self.stop = self.start + self._length
        self.is_open = True
        self.batches = 0

    def is_over(self, step: int) -> bool:
        """Whether the epoch has had all its steps."""
        return step >= self.stop

    def is_last(self, epochs: int | None) -> bool:
        """Whether the epoch is the last one, if the number of epochs is known."""
        return epochs is not None and self.number + 1 >= epochs

    def shift(self, step: int) -> None:
        """The epoch has ended within its steps: the next one begins at `step`."""
        self.origin = (self.number + 1, step)

    def go_on(self, step: int, origin: tuple[int, int] | None) -> None:
        """Goes on at a step, after a restart or a recovery."""
        # An open epoch that contains the step stays open. `origin` is that of the step,
        # or None if it is not known.
        if step < self.start:
            self.is_open = False
        if not self.is_open:
            if origin is not None:
                self.origin = origin
            elif step < self.origin[1]:
                self.origin = (0, 0)
        # Batches already delivered in an epoch that continues.
        self.batches = step - self.start

    def falls_short(self, step: int, epochs: int | None) -> bool:
        """Whether a run that ends at a step leaves some of `epochs` to a later run."""
        return bool(epochs and self._length and self.number_of(step) < epochs)


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
        # A context of events that change no state of callbacks and no variable.
        self._without_effect = without_effect
        # The state of the epoch that a restart or a recovery interrupted.
        self._kept: LoopState | None = None
        # The step of a worker's state may be later than that of its checkpoint; epochs
        # that had ended by then do not begin again.
        self._ahead = 0

    def begin(self, step: int, session: Session) -> None:
        """Begins the epoch of a step."""
        self.clock.begin(max(step, self._ahead))
        has_begun = self._has_begun_before
        self._begin_means(session)
        self._rates.begin_epoch()
        with self._without_effect() if has_begun else contextlib.nullcontext():
            self._deliver("on_epoch_begin", self.clock.number, {})
        if has_begun:
            self._rates.undo_epoch()

    @property
    def _has_begun_before(self) -> bool:
        """Whether the epoch is the one that an earlier run had begun and not ended."""
        kept = self._kept
        if kept is None or kept.sums is None:
            return False
        return self.clock.number_of(kept.step) == self.clock.number

    def _begin_means(self, session: Session) -> None:
        state, self._kept = self._kept, None
        self.logs.begin_epoch(session, state)

    def end(self) -> None:
        """Ends the open epoch with its validation."""
        self.clock.is_open = False
        logs = dict(self.logs.current)
        if self._length:
            logs.update(self._validate(self.clock.number))
        self.last_logs = dict(logs)
        self._deliver("on_epoch_end", self.clock.number, logs)

    def state(self, step: int, session: Session) -> LoopState:
        """What belongs to a checkpoint beside the callbacks' own state."""
        is_open = self.clock.is_open
        return LoopState(
            step,
            self._rates.state(),
            self.logs.sums() if is_open else None,
            self.logs.metrics(session) if is_open else {},
            self.clock.origin,
            self._length,
        )

    def go_on_from(
        self, state: LoopState | None, step: int, session: Session, *, went_back: bool
    ) -> None:
        """Goes on after a restart or a recovery, with the state that was saved."""
        if state is not None:
            self._rates.restore(state.rates)
        self._kept = state
        self._ahead = 0 if state is None else state.step
        self.clock.go_on(step, None if state is None else state.origin)
        if self.clock.is_open:
            if state is not None or went_back:
                self._begin_means(session)
        elif (
            state is not None
            and state.sums is not None
            and self.clock.number_of(state.step) < self.clock.number_of(step)
        ):
            # The epoch's end was not delivered before the checkpoint: the process was
            # killed in its last events, or other workers have moved the global step
            # on into the next epoch.
            self.begin(state.step, session)
            if self.logs.fill(session):
                self.end()
            self.clock.is_open = False


class TrainingStop:
    """The end that somebody has asked for; `model` is that of the callbacks."""

    def __init__(self, model: KerasModel) -> None:
        self._model = model
        self.epochs_are_over: bool = False
        self._is_of_hook = False  # a hook has set `stop_training`, not a callback

    @property
    def is_wanted(self) -> bool:
        """Whether the run ends after the present step."""
        return self.epochs_are_over or bool(self._model.stop_training)

    @property
    def by_callback(self) -> bool:
        """Whether a callback has set `stop_training`."""
        return bool(self._model.stop_training) and not self._is_of_hook

    def by_hook(self) -> None:
        """A hook ends the run: callbacks read it from the model, as in `fit`."""
        if not self._model.stop_training:
            self._model.stop_training = self._is_of_hook = True
