"""Callbacks in a training session: its steps, its stop and its end."""

from __future__ import annotations

import enum
from typing import Any

from absl import logging

from hookbridge.adapters.guests.guest_record import Guest
from hookbridge.adapters.guests.outside import OutsideVariables
from hookbridge.adapters.session_graph import (
    estimator_stack,
    learning_rate,
    log_sources,
    session_variables,
)
from hookbridge.adapters.session_graph.steps import ReachedOps, StepGraph
from hookbridge.adapters.session_loop import checks as callback_checks
from hookbridge.adapters.session_loop import monitors
from hookbridge.adapters.session_loop.callback_run import CallbackRun
from hookbridge.adapters.session_loop.fed_rates import FedRates
from hookbridge.adapters.session_loop.options import HookOptions
from hookbridge.adapters.session_loop.step_reader import CountedSteps, StepReader
from hookbridge.adapters.session_loop.training_epochs import TrainingEpochs
from hookbridge.adapters.session_loop.training_stop import TrainingStop
from hookbridge.adapters.session_loop.validation_run import ValidationRun
from hookbridge.adapters.session_state.loop_state import LoopState
from hookbridge.adapters.session_state.run_state import RunState
from hookbridge.adapters.state.moments import Ending
from hookbridge.ground.protocols import Coordinator, Graph, RunContext, Session


class Phase(enum.Enum):
    """Where a training run is between two training steps, or within one."""

    LOOK = "before the next step the run looks where the session is"
    FOLLOW = "the next step follows the last one in the same epoch"
    OPEN = "a batch or an update has begun; between two steps this means that it failed"
    WAIT = "a batch has begun; its gradients were handed over and not applied yet"


# Enum members are looked up in each step; a global name costs less than an attribute.
_LOOK, _FOLLOW, _OPEN, _WAIT = Phase


class TrainingRun(CallbackRun):
    """A run on a training graph.

    `StepReader` knows its steps, `TrainingEpochs` its epochs, `FedRates` the rates that
    it feeds, `ValidationRun` its validation, `RunState` what a checkpoint has of it and
    `TrainingStop` who ends it. The run calls them in their order.
    """

    def __init__(
        self, config: HookOptions, graph: Graph, counter: Any, steps: StepGraph
    ) -> None:
        super().__init__(config, graph)
        sources = log_sources.find_sources(
            config.logs, monitors.monitored(config.callbacks), graph
        )
        self._reader = StepReader(counter, sources, steps)
        self._counter = self._reader.counter
        self._validation = ValidationRun(self)
        self.metrics: list[str] = [s.key for s in sources if s.key != log_sources.SIZE]
        if "loss" not in self.metrics:
            monitors.warn_without_loss(config)
        self._rates = learning_rate.find(graph, config.learning_rate)
        evaluate = self._validation.run if self._validation else None
        self.make_model(self.metrics, self._rates, evaluate)
        estimator_stack.collect_saver(graph)
        self._state = RunState(
            graph, estimator_stack.checkpoint_dir(), self, self.callbacks
        )
        live_rates = self.model.live_link.rates
        self._epochs = TrainingEpochs(
            config.steps_per_epoch,
            sources,
            live_rates,
            self.deliver,
            self._validation.logs_after,
            self._state.without_effect,
        )
        self._clock, self._logs = self._epochs.clock, self._epochs.logs
        self._values = monitors.ValueCheck(config, self.metrics)
        self._fed = FedRates(live_rates, self._rates)
        self._stop = TrainingStop(self.model)
        self._phase = _LOOK
        self._batch = 0  # number of the open batch
        self._running: ReachedOps | None = None  # the step that is made now
        self._counted: CountedSteps | None = None  # None if callbacks want batches
        # The phase before an update without a step, while that runs.
        self._phase_before: Phase | None = None
        self._waiting_runs = 0  # runs that did not move the global step
        self._outside: OutsideVariables

    def check(self, guest: Guest) -> None:
        callback_checks.check_training(
            guest,
            self.config,
            produced=monitors.Produced(
                self.metrics, bool(self._validation), self._validation.metric_names
            ),
            rates=self._rates,
            clone=self.model.live_link.clone,
        )

    def enter(self, member: Any, session: Session, coord: Coordinator) -> None:
        if member is self.members[0]:
            self._fed.join(session)
        super().enter(member, session, coord)

    @property
    def in_step(self) -> bool:
        """Return whether a training step runs whose events are not all delivered."""
        return self._running is not None

    def loop_state(self) -> LoopState:
        """Return where the run is, for the state beside a checkpoint."""
        return self._epochs.state(self.step, self.session)

    def created(self, coord: Coordinator) -> None:
        self._stop.begin(coord)
        before = self.step
        self._counter.bind(self.session, self.members[0])
        self._read_step()
        self._phase = _LOOK
        # A step may have been lost with its session.
        self._running = self._phase_before = None
        self._values.begin(self.step)
        if self.started:
            self._go_on(before)
            if self.model.stop_training:
                self._stop.end_session()
            return
        self.started = True
        if not (self.calls["on_train_batch_begin"] or self.calls["on_train_batch_end"]):
            self._counted = CountedSteps(self._counter)
        chosen = self._state.choose(self.session, self.step)
        self.deliver("on_train_begin", {})
        link = self.model.live_link
        self._outside = OutsideVariables(
            self.callbacks, link.weights.trainable, link.owns
        )
        self._move_to_restored_step(chosen if chosen != self.step else None)
        # A stop in `on_train_begin` ends the run after its first step, as in `fit`.
        early = self.model.stop_training
        self._state.begin()
        self._go_on(self.step)
        epochs = self.config.epochs
        over = epochs is not None and self._clock.number_of(self.step) >= epochs
        if over or (self.model.stop_training and not early):
            # Nothing is left to do, as when `fit` begins after its last epoch.
            self._stop.epochs_are_over = over
            self._stop.end_session()
        else:
            self._validation.check_monitors()

    def _go_on(self, before: int) -> None:
        """Go on where a new session is; the last one was at the step `before`."""
        went_back, session = self.step < before, self.session
        state = self._state.restore(session, self._logs.keys, went_back=went_back)
        self._epochs.go_on_from(state, self.step, session, went_back=went_back)
        self._state.keeper.ready(self._state)

    def _move_to_restored_step(self, step: int | None) -> None:
        """Set the step if a callback restored an earlier run in `on_train_begin`."""
        epoch = self.model._initial_epoch
        if step is None and epoch is not None:
            # The BackupAndRestore of Keras 3 knows epochs only.
            step = epoch * (self.config.steps_per_epoch or 0)
        if step is not None and self._counter.variable is not None:
            session_variables.write(self.session, [(self._counter.variable, step)])
        self._read_step()

    def _read_step(self) -> None:
        if self._counter.variable is not None:
            self.step = self._counter.read(self.session)

    def before_session_run(self, run_context: RunContext) -> Any:
        self.push_assigned()
        self._phase_before = None  # the last run may have failed
        kind = self._reader.kind_of(run_context.original_args.fetches)
        step = self._running = kind.step
        if step is None:
            if kind.update is None:
                return None
            return self._before_update(kind.update, run_context)
        counted = self._counted
        if (
            counted is not None
            and self._phase is _FOLLOW
            and counted.has_next(step)
            and not self._fed.values  # or they are fed, and the feeds are checked
        ):
            self._phase = _OPEN
            return counted.arguments
        return self._begin_step(step, run_context)

    def _begin_step(self, step: ReachedOps, run_context: RunContext) -> Any:
        """Read a step and open its batch; what it fetches and feeds."""
        if self._fed.of_loop is not None:
            self._fed.note(run_context)
        if self._phase is not _FOLLOW or self._counter.stale:
            self._look(run_context)
            if not self._clock.is_open:
                self._running = None  # a step after the last epoch has no events
                return self._fed.without_events(step, run_context)
        if self._phase is not _WAIT:
            self._batch = max(self.step - self._clock.start, 0)
            if self.hears_of("on_train_batch_begin"):
                self._phase = _OPEN
                self.deliver("on_train_batch_begin", self._batch, {})
        self._phase = _OPEN
        feed_dict = run_context.original_args.feed_dict
        arguments = self._reader.begin(step, feed_dict)
        if self._counted is not None:
            is_same = self._reader.is_same_again(step)
            self._counted.note(step, arguments, is_same=is_same)
        return self._fed.added_to(arguments, step, feed_dict)

    def _before_update(self, update: ReachedOps, run_context: RunContext) -> Any:
        """Begin the epoch for a run that updates variables and moves no step."""
        if self._phase is _WAIT:
            return self._fed.without_events(update, run_context)
        if self._phase is not _FOLLOW or self._counter.stale:
            self._look(run_context)
        self._phase_before = self._phase
        self._phase = _OPEN
        feed_dict = run_context.original_args.feed_dict
        arguments = self._reader.begin_update(update, feed_dict)
        return self._fed.added_to(arguments, update, feed_dict)

    def _look(self, run_context: RunContext) -> None:
        """Find out where the session is, and which epoch the next step is in."""
        self.session = run_context.session
        failed, waits = self._phase is _OPEN, self._phase is _WAIT
        if self._counter.stale or failed:
            self._read_step()
        if failed:
            # The last step raised and the loop went on: the data has ended, and the
            # epoch with it, as in `fit` with a dataset of unknown size.
            self._phase = _LOOK
            if self._clock.batches:
                self._end_epoch()
                self._clock.shift(self.step)
        elif self._clock.is_open and not waits and self._clock.is_over(self.step):
            # Runs through the raw session made the last steps of the epoch.
            self._end_epoch()
        if waits or self._clock.is_open:
            return
        epochs = self.config.epochs
        if epochs is not None and self._clock.number_of(self.step) >= epochs:
            # Others have made the last steps: this run is one too many.
            self._stop.epochs_are_over = True
            run_context.request_stop()
        else:
            self._epochs.begin(self.step, self.session)

    def after_session_run(self, run_context: RunContext) -> None:
        self._stop.note_run(run_context)
        if self._running is None:
            if self._phase_before is not None:
                self._after_update()
            return
        before = self.step
        self.step = self._reader.step_after(before, self.results, run_context)
        if self.step == before:
            # Gradients were handed over but not applied yet (SyncReplicasOptimizer).
            self._phase = _WAIT
            self._waiting_runs += 1
        else:
            self._finish_step(run_context)
        self._running = None
        self._state.keeper.step_is_over()

    def _after_update(self) -> None:
        """Count the values of an update in the means; the phase stays as it was."""
        self._logs.update(self._reader.update_values(self.results))
        self._phase = self._phase_before or _LOOK
        self._phase_before = None

    def _finish_step(self, run_context: RunContext) -> None:
        """End a batch, and its epoch if that is over or a callback stops."""
        if run_context.stop_requested:
            self._stop.note_hook()
        if self._fed.of_loop is not None:
            self._fed.note(run_context)
        self._phase = _LOOK
        clock = self._clock
        clock.batches += 1
        logs = self._logs.update(self._reader.fetch.unpack(self.results))
        if self.hears_of("on_train_batch_end"):
            batch = max(self._batch, self.step - 1 - clock.start)
            self.deliver("on_train_batch_end", batch, dict(logs))
        over = self.step >= clock.end_step and self._confirm_over(run_context)
        if not over and not self._stop.by_callback:
            self._phase = _FOLLOW
            return
        self.session = run_context.session
        self._end_epoch()
        if not over:
            # A callback has ended the epoch, and maybe took its stop back.
            clock.shift(self.step)
        epochs = self.config.epochs
        if over and clock.is_last(epochs):
            self._stop.epochs_are_over = True
            self.stop_reason = f"the last of `epochs={epochs}` is over"
        if self._stop.is_wanted:
            run_context.request_stop()

    def _confirm_over(self, run_context: RunContext) -> bool:
        """Read the step if it was only counted; return whether the epoch is over."""
        if self._reader.is_counted:
            self.step = self._counter.confirmed(self.step, run_context)
        return self._clock.is_over(self.step)

    def finish(self) -> None:
        # If the data has ended, the last step began and did not end.
        data_ended = self._phase is _OPEN
        by_callback = self._stop.by_callback
        if not data_ended:
            self._stop.note_end()
        self._phase = _LOOK
        self._running = None
        if data_ended or not self._counter.is_counted:
            before = self.step
            self._read_step()
            self._state.keeper.others_moved(before, self.step)
        clock = self._clock
        partial = clock.is_open and clock.batches > 0
        if partial and clock.is_over(self.step):
            # Other workers have made the last steps of the epoch, and ended the job.
            self._end_epoch()
            partial = False
        left = clock.falls_short(self.step, self.config.epochs)
        ending = Ending(
            in_epoch=partial,
            epochs_left=left,
            is_of_data=data_ended,
            by_callback=by_callback,
        )
        with self._state.ending(ending):
            if partial:
                self._end_epoch()
                if data_ended:
                    clock.shift(self.step)
            self._finish_training()

    def _finish_training(self) -> None:
        """Deliver the last event, and warn about what had no effect."""
        if self._waiting_runs:
            logging.warning(
                "hookbridge: %d runs did not end a batch, since they did not move "
                "the global step. Their gradients waited for a later update or were "
                "dropped (as by SyncReplicasOptimizer).",
                self._waiting_runs,
            )
        self.deliver("on_train_end", dict(self._epochs.last_logs))
        self._epochs.warn_of_missed(self._clock.number_of(self.step))
        self._outside.warn(self.step)

    def _end_epoch(self) -> None:
        """End the open epoch; what had no effect in it is told or refused."""
        self._values.end_epoch(self.step, self._logs.current)
        self._fed.check()
        self._epochs.end()
        self._outside.warn(self.step)

    def reset_metrics(self) -> None:
        self._logs.reset(self.session)

    def stop_from_within(self) -> None:
        super().stop_from_within()
        if not self.in_step:
            self._stop.end_session()  # nobody looks at the flag between steps
