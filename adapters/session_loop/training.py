"""Callbacks in a training session: its steps, its stop and its end."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any

import tensorflow as tf
from absl import logging

from hookbridge.adapters.guests.outside import OutsideVariables
from hookbridge.adapters.guests.record import Guest
from hookbridge.adapters.live_model import rates
from hookbridge.adapters.live_model.rate import OverriddenRates
from hookbridge.adapters.session_graph import estimator_stack, learning_rate
from hookbridge.adapters.session_graph import logs as log_sources
from hookbridge.adapters.session_graph import variables as session_variables
from hookbridge.adapters.session_graph.fetches import FetchPlan, StepFetch
from hookbridge.adapters.session_graph.step_counter import StepCounter
from hookbridge.adapters.session_graph.steps import Step, StepGraph
from hookbridge.adapters.session_loop import checks as callback_checks
from hookbridge.adapters.session_loop import monitors, values
from hookbridge.adapters.session_loop.config import SessionConfig
from hookbridge.adapters.session_loop.run import SessionRun
from hookbridge.adapters.session_loop.training_epochs import TrainingEpochs
from hookbridge.adapters.session_loop.validations import ValidationRun
from hookbridge.adapters.session_state.keeper import RunState
from hookbridge.adapters.session_state.loop_state import LoopState
from hookbridge.adapters.state.moments import Ending


class Phase(enum.Enum):
    """Where a training run is between two training steps, or within one."""

    LOOK = "before the next step the run looks where the session is"
    FOLLOW = "the next step follows the last one in the same epoch"
    OPEN = "a batch has begun; between two steps this means that its step failed"
    WAIT = "a batch has begun; its gradients were handed over and not applied yet"


# Enum members are looked up in each step; a global name costs less than an attribute.
_LOOK, _FOLLOW, _OPEN, _WAIT = Phase


class TrainRun(SessionRun):
    """A run on a training graph."""

    def __init__(
        self, config: SessionConfig, graph: Any, counter: Any, steps: StepGraph
    ) -> None:
        super().__init__(config, graph)
        self._steps = steps
        self._counter = StepCounter(counter, steps)
        sources = log_sources.find_sources(
            config.logs, monitors.monitored(config.callbacks), graph
        )
        self._plan = FetchPlan(counter, sources, steps)
        self._validation = ValidationRun(self)
        self.metrics: list[str] = [s.key for s in sources if s.key != log_sources.SIZE]
        if "loss" not in self.metrics:
            monitors.warn_without_loss(config)
        self._rates = learning_rate.find(graph, config.learning_rate)
        evaluate = self._validation.run if self._validation else None
        self.make_model(self.metrics, self._rates, evaluate)
        live_rates = self.model.live_link.rates
        self._epochs = TrainingEpochs(
            config.steps_per_epoch,
            sources,
            live_rates,
            self.deliver,
            self._validated,
            lambda: self._state.without_effect(),
        )
        self._clock, self._logs = self._epochs.clock, self._epochs.logs
        # The rates that this group feeds: all overridden ones of the session, or none.
        self._feeds = live_rates.feeds
        # The one learning rate, if the loop may feed it.
        self._fed_rate = learning_rate.placeholder(self._rates)
        self._phase = _LOOK
        self._batch = 0  # number of the open batch
        self._now: Step | None = None  # the step that runs
        self._fetch: StepFetch  # what it fetches
        # What an update without a step fetches, and the phase before it.
        self._between: StepFetch | None = None
        self._resume: Phase | None = None
        self._adds: int | None = None  # by how much it moves the global step, if known
        # The kind of step that is only counted, since no callback wants its batches.
        self._plain: Step | None = None
        self._batch_begin = self._batch_end = True  # whether any are wanted
        self._start = 0  # the step at which the session began
        self._checked = False  # whether each entry of `logs` had a value
        # The rates that were fed, and whether a run has read them.
        self._fed_rates: dict[str, bool] = {}
        self._without_update = 0  # runs that did not move the global step
        self._hook_stops = False  # a hook has set `stop_training`, not a callback
        self._epochs_are_over = False
        self._coord: Any = None
        self._context: Any = None  # of the last run: hooks behind this one may stop it
        estimator_stack.collect_saver(graph)
        self._state = RunState(
            graph, estimator_stack.checkpoint_dir(), self, self.called
        )
        self._outside: OutsideVariables | None = None

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

    def enter(self, member: Any, session: Any, coord: Any) -> None:
        if member is self.members[0]:
            self._feeds = self.model.live_link.rates.join(session)
            self._feeds.feed_from(self._stop_feeding)
        super().enter(member, session, coord)

    def _stop_feeding(self) -> None:
        self._feeds = OverriddenRates()

    @property
    def in_step(self) -> bool:
        """Whether a training step is running whose events are not all delivered."""
        return self._now is not None

    def loop_state(self) -> LoopState:
        """Where the run is, for the state beside a checkpoint."""
        return self._epochs.state(self.step, self.session)

    def _validated(self) -> Mapping[str, Any]:
        """The `val_*` logs at the end of an epoch."""
        epoch = self._clock.number
        if not self._validation or not self.validates_here():
            return {}
        if not self.config.validates_after(epoch):
            return {}
        return values.as_val_logs(self._validation.run())

    def created(self, coord: Any) -> None:
        self._coord = coord
        before = self.step
        self._counter.bind(self.session, self.members[0])
        self._read_step()
        self._phase = _LOOK
        self._now = self._resume = None  # a step that was lost with its session
        self._start = self.step
        if self.started:
            self._go_on(before)
            if self.model.stop_training:
                coord.request_stop()
            return
        self.started = True
        self._batch_begin = bool(self.calls["on_train_batch_begin"])
        self._batch_end = bool(self.calls["on_train_batch_end"])
        chosen = self._state.choose(self.session, self.step)
        self.deliver("on_train_begin", {})
        link = self.model.live_link
        self._outside = OutsideVariables(self.called, link.weights.trainable, link.owns)
        self._restored(chosen if chosen != self.step else None)
        # A stop in `on_train_begin` ends the run after its first step, as in `fit`.
        early = self.model.stop_training
        self._state.begin()
        self._go_on(self.step)
        epochs = self.config.epochs
        over = epochs is not None and self._clock.number_of(self.step) >= epochs
        if over or (self.model.stop_training and not early):
            # Nothing is left to do, as when `fit` begins after its last epoch.
            self._epochs_are_over = over
            coord.request_stop()
        else:
            self._validation.look()

    def _go_on(self, before: int) -> None:
        """Goes on where a new session is; the last one was at the step `before`."""
        went_back, session = self.step < before, self.session
        state = self._state.restore(session, self._logs.keys, went_back=went_back)
        self._epochs.go_on_from(state, self.step, session, went_back=went_back)
        self._state.keeper.ready(self._state)

    def _restored(self, step: int | None) -> None:
        """Sets the step if a callback restored an earlier run in `on_train_begin`."""
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

    def before_step(self, run_context: Any) -> Any:
        self.carry()
        run = self._steps.run_of(run_context.original_args.fetches)
        now = self._now = run.step
        if now is None:
            return self._before_update(run.update, run_context) if run.update else None
        counter = self._counter
        follows = self._phase is _FOLLOW and not counter.stale
        if now is self._plain and follows and counter.exact and not self._feeds:
            self._phase = _OPEN
            return self._fetch.arguments
        if self._fed_rate is not None:
            self._note_feed(run_context)
        if not follows:
            self.session = run_context.session
            self._look()
        if self._phase is not _WAIT:
            self._batch = max(self.step - self._clock.start, 0)
            if self._batch_begin:
                self._phase = _OPEN
                self.deliver("on_train_batch_begin", self._batch, {})
        self._phase = _OPEN
        feed_dict = run_context.original_args.feed_dict
        self._fetch, self._adds = self._plan.fetch_of(now, counter, feed_dict)
        has_batch_events = self._batch_begin or self._batch_end
        is_plain = self._adds and not has_batch_events and self._plan.is_fixed(now)
        self._plain = now if is_plain else None
        return self._with_rates(self._fetch.arguments, now, feed_dict)

    def _with_rates(self, arguments: Any, run: Step, feed_dict: Any) -> Any:
        """The arguments of a run that updates variables, with the rates fed."""
        if not self._feeds:
            return arguments
        rates.check_feeds(self._feeds, feed_dict)
        for tensor in self._feeds:
            self._fed_rates[tensor.name] = tensor.op in run.ops or self._fed_rates.get(
                tensor.name, False
            )
        return arguments._replace(feed_dict=self._feeds.feed_dict())

    def _before_update(self, update: Step, run_context: Any) -> Any:
        """A run updates variables and moves no step: its epoch has begun, too."""
        if self._phase is _WAIT:
            return None
        if self._phase is not _FOLLOW or self._counter.stale:
            self.session = run_context.session
            self._look()
        self._resume, self._phase = self._phase, _OPEN
        feed_dict = run_context.original_args.feed_dict
        self._between = self._plan.fetch_between(update, feed_dict)
        arguments = tf.compat.v1.train.SessionRunArgs(None)
        if self._between is not None:
            arguments = self._between.arguments
        return self._with_rates(arguments, update, feed_dict)

    def _note_feed(self, run_context: Any) -> None:
        value = rates.fed_by_loop(self._fed_rate, run_context.original_args.feed_dict)
        self.model.live_link.rates.fed_by_loop(value)

    def _look(self) -> None:
        """Finds out where the session is, and which epoch the next step is in."""
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
        if not waits and not self._clock.is_open:
            self._epochs.begin(self.step, self.session)

    def _after_update(self) -> None:
        if self._between is not None:
            self._logs.update(self._between.unpack(self.results))
        self._phase, self._resume = self._resume or _LOOK, None

    def after_step(self, run_context: Any) -> None:
        self._context = run_context
        if self._now is None:
            if self._resume is not None:
                self._after_update()
            return
        before = self.step
        if self._now is self._plain and not self._counter.stale:
            self.step = before + (self._adds or 0)
        else:
            self.step = self._counter.after(
                before, self._adds, self._fetch.count(self.results), run_context
            )
        if self.step == before:
            # Gradients were handed over but not applied yet (SyncReplicasOptimizer).
            self._phase = _WAIT
            self._without_update += 1
        else:
            self._finish_step(run_context)
        self._now = None
        self._state.keeper.step_is_over()

    def _note_stop(self) -> None:
        """A hook ends the run: callbacks read it from the model, as in `fit`."""
        if not self.model.stop_training:
            self.model.stop_training = self._hook_stops = True

    @property
    def _callback_stops(self) -> bool:
        return bool(self.model.stop_training) and not self._hook_stops

    def _finish_step(self, run_context: Any) -> None:
        if run_context.stop_requested:
            self._note_stop()
        if self._fed_rate is not None:
            self._note_feed(run_context)
        self._phase = _LOOK
        clock = self._clock
        clock.batches += 1
        logs = self._logs.update(self._fetch.unpack(self.results))
        if self._batch_end:
            batch = max(self._batch, self.step - 1 - clock.start)
            self.deliver("on_train_batch_end", batch, dict(logs))
        over = self.step >= clock.stop
        if over and self._adds is not None:
            self.step = self._counter.confirmed(self.step, run_context)
            over = clock.is_over(self.step)
        if not over and not self._callback_stops:
            self._phase = _FOLLOW
            return
        self.session = run_context.session
        self._end_epoch()
        if not over:
            # A callback has ended the epoch, and maybe took its stop back.
            clock.shift(self.step)
        epochs = self.config.epochs
        if over and epochs is not None and clock.number + 1 >= epochs:
            self._epochs_are_over = True
            self.stop_reason = f"the last of `epochs={epochs}` is over"
        if self._epochs_are_over or self.model.stop_training:
            run_context.request_stop()

    def finish(self) -> None:
        # If the data has ended, the last step began and did not end.
        data_ended = self._phase is _OPEN
        by_callback = self._callback_stops
        is_stopped = self._coord.should_stop() or (
            self._context is not None and self._context.stop_requested
        )
        if is_stopped and not (data_ended or self._epochs_are_over):
            self._note_stop()  # by a hook that comes after the callbacks
        self._phase = _LOOK
        self._now = None
        if data_ended:
            self._read_step()
        clock = self._clock
        partial = clock.is_open and clock.batches > 0
        left = clock.falls_short(self.step, self.config.epochs)
        with self._state.ending(Ending(partial, left, data_ended, by_callback)):
            if partial:
                self._end_epoch()
                if data_ended:
                    clock.shift(self.step)
            self._finish_training()

    def _finish_training(self) -> None:
        if self._without_update:
            logging.warning(
                "hookbridge: %d runs ended no batch, since they moved no global step: "
                "their gradients waited for a later update, or were dropped (as by "
                "SyncReplicasOptimizer).",
                self._without_update,
            )
        self.deliver("on_train_end", dict(self._epochs.last_logs))
        self._check_outside()

    def _end_epoch(self) -> None:
        # A run between two steps is not missing after a single step.
        if not self._checked and self.step > self._start + 1:
            self._checked = True
            missing = [key for key in self.metrics if key not in self._logs.current]
            monitors.check_values(self.config, missing, list(self._logs.current))
        monitors.check_rates(self._fed_rates)
        self._epochs.end()
        self._check_outside()

    def _check_outside(self) -> None:
        outside, self._outside = self._outside, None
        if outside is not None:
            outside.warn(self.step)

    def reset_metrics(self) -> None:
        self._logs.reset(self.session)

    def stop_from_within(self) -> None:
        super().stop_from_within()
        if not self.in_step:
            self._coord.request_stop()  # nobody looks at the flag between steps
