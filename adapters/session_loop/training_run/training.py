"""Callbacks in a training session: its steps, its stop and its end."""

from __future__ import annotations

from typing import Any

from absl import logging

from hookbridge.adapters.guests.guest_record import Guest
from hookbridge.adapters.session_graph import (
    estimator_stack,
    learning_rate,
    log_sources,
    session_variables,
)
from hookbridge.adapters.session_graph.steps import ReachedOps, StepFinder
from hookbridge.adapters.session_loop.evaluations.validation_run import ValidationRun
from hookbridge.adapters.session_loop.shared import checks, monitors
from hookbridge.adapters.session_loop.shared.callback_run import CallbackRun
from hookbridge.adapters.session_loop.shared.options import HookOptions
from hookbridge.adapters.session_loop.training_run.outside import OutsideVariables
from hookbridge.adapters.session_loop.training_run.phases import (
    AFTER,
    Phase,
    has_failed,
    is_update,
)
from hookbridge.adapters.session_loop.training_run.run_arguments import RunArguments
from hookbridge.adapters.session_loop.training_run.step_reader import StepReader
from hookbridge.adapters.session_loop.training_run.training_epochs import TrainingEpochs
from hookbridge.adapters.session_loop.training_run.training_stop import TrainingStop
from hookbridge.adapters.session_state.run_state import RunState
from hookbridge.adapters.state.loop_state import LoopState
from hookbridge.adapters.state.moments import is_early_end
from hookbridge.ground.protocols import Coordinator, Graph, RunContext, Session


class TrainingRun(CallbackRun):
    """A run on a training graph.

    `phases` is the table of where it is. It reads by `StepReader`, and `RunArguments`
    has what its runs fetch and feed. It tells callbacks by `TrainingEpochs` and
    `ValidationRun`. `RunState` has what a checkpoint has of it, and `TrainingStop` who
    ends it. The run calls them in their order.
    """

    def __init__(
        self, config: HookOptions, graph: Graph, counter: object, steps: StepFinder
    ) -> None:
        super().__init__(config, graph)
        sources = log_sources.find_sources(
            config.logs, monitors.monitored(config.callbacks), graph
        )
        self._reader = StepReader(counter, sources, steps)
        self._validation = ValidationRun(self)
        self.metrics: list[str] = [s.key for s in sources if s.key != log_sources.SIZE]
        if "loss" not in self.metrics:
            monitors.warn_without_loss(config)
        rates = learning_rate.find(graph, config.learning_rate)
        evaluate = self._validation.run if self._validation else None
        self.make_model(self.metrics, rates, evaluate)
        estimator_stack.collect_saver(graph)
        self._state = RunState(
            graph, estimator_stack.checkpoint_dir(), self, self.audience.callbacks
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
        self._values = monitors.ValueCheck(config, self.metrics)
        self._arguments = RunArguments(self._reader, live_rates)
        self._stop = TrainingStop(self.model)
        self._phase: Phase = "unknown"
        self._batch = 0  # number of the open batch
        # Whether a training step runs whose events are not all delivered.
        self.in_step: bool = False
        self._waiting_runs = 0  # runs that did not move the global step

    def check(self, guest: Guest) -> None:
        checks.check_training(
            guest,
            self.config,
            produced=monitors.Produced(
                self.metrics, bool(self._validation), self._validation.metric_names
            ),
            clone=self.model.live_link.clone,
            rates=self.model.live_link.rates.in_graph,
        )

    def enter(self, member: object, session: Session, coord: Coordinator) -> None:
        if member is self.members[0]:
            self.model.live_link.rates.join(session)
        super().enter(member, session, coord)

    def loop_state(self) -> LoopState:
        """Return where the run is, for the state beside a checkpoint."""
        return self._epochs.state(self.step, self.session)

    def start_or_resume(self, coord: Coordinator) -> None:
        self._stop.coord = coord
        before = self.step
        self._reader.counter.bind(self.session, self.members[0])
        self._read_step()
        # A step may have been lost with its session.
        self._phase, self.in_step = AFTER["session"][self._phase], False
        if self.started and self._state.is_lost(self.session, before, self.step):
            self.started = False
        self._values.begin(self.step)
        self.audience.empty_history()
        if not self.started:
            with self.starting():
                self._begin()
            return
        self._go_on(before, is_recovery=True)
        if self.model.stop_training:
            self._stop.end_session()

    def _begin(self) -> None:
        """Begin the run: in its first session, or again in one that lost it."""
        if self._state.first_step is not None:
            # The run begins again, as in a new process.
            self.model.stop_training = False
            self._state.part.restore_construction()
            self._epochs.forget()
        calls = self.audience.calls
        if not (calls["on_train_batch_begin"] or calls["on_train_batch_end"]):
            self._arguments.only_counts = True
        restart_step = self._state.find_restart_step(self.session, self.step)
        self.model.live_link.rates.begin_run()
        self.deliver("on_train_begin", {})
        link = self.model.live_link
        self._outside = OutsideVariables(
            self.audience.callbacks, link.weights.trainable, link.owns
        )
        self._move_to_restored_step(restart_step if restart_step != self.step else None)
        # A stop in `on_train_begin` ends the run after its first step, as in `fit`.
        early = self.model.stop_training
        self._state.begin()
        self._go_on(self.step, is_recovery=False)
        epochs = self.config.epochs
        over = epochs is not None and self._epochs.clock.number_of(self.step) >= epochs
        if over or (self.model.stop_training and not early):
            # Nothing is left to do, as when `fit` begins after its last epoch.
            self._stop.epochs_are_over = over
            self._stop.end_session()
        else:
            self._validation.check_monitors()

    def _go_on(self, before: int, *, is_recovery: bool) -> None:
        """Go on where a new session is; the last one was at the step `before`."""
        went_back, session = self.step < before, self.session
        state = self._state.restore(
            session, self._epochs.logs.keys, went_back=went_back
        )
        self._epochs.go_on_from(
            state, self.step, session, went_back=went_back, is_recovery=is_recovery
        )
        self._state.states.ready(self._state)

    def _move_to_restored_step(self, step: int | None) -> None:
        """Set the step if a callback restored an earlier run in `on_train_begin`."""
        epoch = self.model._initial_epoch
        if step is None and epoch is not None:
            # The BackupAndRestore of Keras 3 knows epochs only.
            step = epoch * (self.config.steps_per_epoch or 0)
        variable = self._reader.counter.variable
        if step is not None and variable is not None:
            session_variables.write(self.session, [(variable, step)])
        self._read_step()

    def _read_step(self) -> None:
        counter = self._reader.counter
        if counter.variable is not None:
            self.step = counter.read(self.session)

    def before_session_run(self, run_context: RunContext) -> Any:
        self.push_assigned()
        self._phase = AFTER["run"][self._phase]
        kind = self._reader.kind_of(run_context.original_args.fetches)
        reached = kind.step
        self.in_step = reached is not None
        if reached is None:
            if kind.update is None:
                return None
            return self._before_update(kind.update, run_context)
        if self._phase == "in epoch":
            arguments = self._arguments.repeat(reached)
            if arguments is not None:
                self._phase = AFTER["step"][self._phase]
                return arguments
        return self._begin_step(reached, run_context)

    def _begin_step(self, reached: ReachedOps, run_context: RunContext) -> Any:
        """Open the batch of a step; return what it fetches and feeds."""
        if self._arguments.of_loop is not None:
            self._arguments.note_feeds(run_context)
        clock = self._epochs.clock
        if self._phase != "in epoch" or self._reader.counter.stale:
            self._look(run_context)
            if not clock.is_open:
                self.in_step = False  # a step after the last epoch has no events
                return self._arguments.without_events(reached, run_context)
        is_new = self._phase != "gradients waiting"
        if is_new:
            self._batch = max(self.step - clock.start, 0)
        self._phase = AFTER["step"][self._phase]
        if is_new and "on_train_batch_begin" in self.audience.heard:
            self.deliver("on_train_batch_begin", self._batch, {})
        return self._arguments.begin_step(reached, run_context.original_args.feed_dict)

    def _before_update(self, reached: ReachedOps, run_context: RunContext) -> Any:
        """Let the epoch of a run begin that updates variables and moves no step."""
        if self._phase == "gradients waiting":
            return self._arguments.without_events(reached, run_context)
        if self._phase != "in epoch" or self._reader.counter.stale:
            self._look(run_context)
        self._phase = AFTER["update"][self._phase]
        return self._arguments.begin_update(
            reached, run_context.original_args.feed_dict
        )

    def _look(self, run_context: RunContext) -> None:
        """Find out where the session is, and which epoch the next step is in."""
        self.session = run_context.session
        failed, waits = has_failed(self._phase), self._phase == "gradients waiting"
        clock = self._epochs.clock
        if self._reader.counter.stale or failed:
            self._read_step()
        if failed:
            # The last step raised and the loop went on: the data has ended, and the
            # epoch with it, as in `fit` with a dataset of unknown size.
            self._phase = AFTER["found"][self._phase]
            if clock.batches:
                self._end_epoch()
                clock.shift(self.step)
        elif clock.is_open and not waits and clock.is_over(self.step):
            # Runs through the raw session made the last steps of the epoch.
            self._end_epoch()
        if waits or clock.is_open:
            return
        epochs = self.config.epochs
        if epochs is not None and clock.number_of(self.step) >= epochs:
            # Others have made the last steps: this run is one too many.
            self._stop.epochs_are_over = True
            run_context.request_stop()
        else:
            self._epochs.begin(self.step, self.session)

    def after_session_run(self, run_context: RunContext) -> None:
        self._stop.last_run = run_context
        if not self.in_step:
            if is_update(self._phase):
                # The values of an update count in the means.
                self._epochs.logs.update(self._reader.update_values(self.results))
                self._phase = AFTER["updated"][self._phase]
            return
        before = self.step
        self.step = self._reader.step_after(before, self.results, run_context)
        if self.step == before:
            # Gradients were handed over but not applied yet (SyncReplicasOptimizer).
            self._phase = AFTER["waiting"][self._phase]
            self._waiting_runs += 1
        else:
            self._finish_step(run_context)
        self.in_step = False
        self._state.states.step_is_over()

    def _finish_step(self, run_context: RunContext) -> None:
        """End a batch, and its epoch if that is over or a callback stops."""
        if run_context.stop_requested:
            self._stop.note_hook()
        if self._arguments.of_loop is not None:
            self._arguments.note_feeds(run_context)
        self._phase = AFTER["moved"][self._phase]
        clock = self._epochs.clock
        clock.batches += 1
        logs = self._epochs.logs.update(self._reader.fetch.unpack(self.results))
        if "on_train_batch_end" in self.audience.heard:
            batch = max(self._batch, self.step - 1 - clock.start)
            self.deliver("on_train_batch_end", batch, dict(logs))
        over = self.step >= clock.end_step and self._confirm_over(run_context)
        if not over and not self._stop.is_by_callback:
            self._phase = AFTER["epoch goes on"][self._phase]
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
            self.step = self._reader.counter.confirm(self.step, run_context)
        return self._epochs.clock.is_over(self.step)

    def finish(self) -> None:
        # If the data has ended, the last step began and did not end.
        data_ended = has_failed(self._phase)
        by_callback = self._stop.is_by_callback
        if not data_ended:
            self._stop.note_end()
        self._phase, self.in_step = AFTER["end"][self._phase], False
        if data_ended or not self._reader.counter.is_counted:
            before = self.step
            self._read_step()
            self._state.states.keeper.move_step(before, self.step)
        clock = self._epochs.clock
        partial = clock.is_open and clock.batches > 0
        if partial and clock.is_over(self.step):
            # Other workers have made the last steps of the epoch, and ended the job.
            self._end_epoch()
            partial = False
        is_early = is_early_end(
            in_epoch=partial,
            epochs_left=clock.falls_short(self.step, self.config.epochs),
            is_of_data=data_ended,
            by_callback=by_callback,
        )
        with self._state.ending(is_early=is_early):
            if partial:
                self._end_epoch()
                if data_ended:
                    clock.shift(self.step)
            self._finish_training()

    def _finish_training(self) -> None:
        """Deliver the last event, and warn about what had no effect."""
        if self._waiting_runs:
            logging.warning(
                "hookbridge: %d runs did not end a batch: they trained, but did not "
                "move the global step. Their gradients waited for a later update, or "
                "were dropped. This is normal with SyncReplicasOptimizer.",
                self._waiting_runs,
            )
        self.deliver("on_train_end", dict(self._epochs.last_logs))
        self._epochs.warn_of_missed(self._epochs.clock.number_of(self.step))
        self._outside.warn(self.step)

    def _end_epoch(self) -> None:
        """End the open epoch; tell or refuse what had no effect in it."""
        self._values.end_epoch(self.step, self._epochs.logs.current)
        self._arguments.check_read()
        self._epochs.end()
        self._outside.warn(self.step)

    def reset_metrics(self) -> None:
        self._epochs.logs.reset(self.session)

    def stop_from_within(self) -> None:
        super().stop_from_within()
        if not self.in_step:
            self._stop.end_session()  # nobody looks at the flag between steps
