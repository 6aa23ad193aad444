"""Callbacks in a training session: epochs, batches, validation, the end."""

from __future__ import annotations

from typing import Any

from absl import logging

from hookbridge.adapters.guests.outside import OutsideVariables
from hookbridge.adapters.live_model import rates
from hookbridge.adapters.session_graph import estimator_stack, learning_rate
from hookbridge.adapters.session_graph import logs as log_sources
from hookbridge.adapters.session_graph import variables as session_variables
from hookbridge.adapters.session_graph.fetches import FetchPlan, StepFetch
from hookbridge.adapters.session_graph.metrics import MetricValues
from hookbridge.adapters.session_graph.step_counter import StepCounter
from hookbridge.adapters.session_graph.steps import Step, StepGraph
from hookbridge.adapters.session_loop import checks as callback_checks
from hookbridge.adapters.session_loop import loop_state, monitors, values
from hookbridge.adapters.session_loop.config import SessionConfig
from hookbridge.adapters.session_loop.epoch_logs import SIZE, EpochLogs
from hookbridge.adapters.session_loop.epochs import EpochClock
from hookbridge.adapters.session_loop.loop_state import LoopState
from hookbridge.adapters.session_loop.run import SessionRun
from hookbridge.adapters.session_loop.slow import BatchTimer
from hookbridge.adapters.session_loop.state_keeper import StateKeeper
from hookbridge.adapters.session_loop.validation_run import ValidationRun


class TrainRun(SessionRun):
    """A run on a training graph.

    Args:
      config: what `as_hooks` was given.
      graph: the graph, not finalized.
      counter: the global step, or None.
      steps: which runs are training steps.
    """

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
        self._logs: EpochLogs = EpochLogs(sources)
        self._streaming: MetricValues = MetricValues(
            [op for s in sources for op in s.resets]
        )
        self.metrics = [s.key for s in sources if s.key != SIZE]
        if "loss" not in self.metrics:
            monitors.warn_without_loss(config)
        self._rates = learning_rate.find(graph, config.learning_rate)
        self.validation = ValidationRun(self)
        self.make_model(
            self.metrics,
            self._rates,
            self.validation.run if self.validation else None,
        )
        # The rates that this group feeds: all of the session, or none.
        self._feeds = self.model.live_link.rates.feeds
        # The one learning rate, if the loop may feed it.
        self._fed_rate = learning_rate.placeholder(self._rates)
        self._epochs = EpochClock(config.steps_per_epoch)
        self._batch = -1  # number of the open batch, -1 if none is open
        self._now: Step | None = None
        self._fetch: StepFetch
        self._adds: int | None = None
        # Whether the last step is complete and the next one is in the same epoch.
        self._steady = False
        # The kind of step that is only counted, since no callback wants its batches.
        self._plain: Step | None = None
        self._coord: Any = None
        estimator_stack.collect_saver(graph)
        self._was_at = 0  # the step before a recovery
        self.checkpoint_dir = estimator_stack.checkpoint_dir()
        self._state = StateKeeper(self)
        # The state of the epoch that a restart or a recovery interrupted.
        self._kept: LoopState | None = None
        # The step of a worker's state may be later than that of its checkpoint; epochs
        # that had ended by then do not begin again.
        self._ahead = 0
        # Whether the gradients of the open batch are not applied yet.
        self._waiting = False
        self._without_update = 0  # runs that moved no global step
        self._batch_begin = self._batch_end = True
        self._outside: OutsideVariables | None = None
        self._epoch_logs: dict[str, Any] = {}

    def check(self, callback: Any) -> None:
        callback_checks.check_training(
            callback,
            self.config,
            produced=monitors.Produced(
                self.metrics, bool(self.validation), self.validation.metric_names
            ),
            rates=self._rates,
            not_cloned=self.model.live_link.not_cloned,
        )

    def enter(self, member: Any, session: Any, coord: Any) -> None:
        if member is self.members[0]:
            self._feeds = self.model.live_link.rates.join(session)
            self._feeds.feed_from(self._stop_feeding)
        super().enter(member, session, coord)

    def _stop_feeding(self) -> None:
        self._feeds = rates.OverriddenRates()

    @property
    def went_back(self) -> bool:
        """Whether the session is at an earlier step than before its recovery."""
        return self.step < self._was_at

    @property
    def in_step(self) -> bool:
        """Whether a training step is running whose events are not all delivered."""
        return self._now is not None

    # --- the session --------------------------------------------------------

    def created(self, coord: Any) -> None:
        self._coord = coord
        self._was_at = self.step
        self._counter.bind(self.session, self.members[0])
        self._read_step()
        self._batch = -1
        self._now = None  # a step that was lost with its session
        self._waiting = False
        self._steady = False
        if self.started:
            self._state.session_is_new()
            if self.model.stop_training:
                coord.request_stop()
            return
        self.started = True
        BatchTimer(self.calls, self._note_calls)
        self._note_calls()
        self._logs.begin_epoch()
        self.deliver("on_train_begin", {})
        self._outside = OutsideVariables(
            self.called, self.model.live_link.trained, self.model.live_link.owns
        )
        self._restored()
        # A stop in `on_train_begin` ends the run after its first step, as in `fit`.
        early = self.model.stop_training
        self._state.begin()
        epochs = self.config.epochs
        over = epochs is not None and self._epochs.number_of(self.step) >= epochs
        if over or (self.model.stop_training and not early):
            # Nothing is left to do, as when `fit` begins behind its last epoch.
            coord.request_stop()

    def _note_calls(self) -> None:
        """Takes note of which batch events are wanted."""
        self._batch_begin = bool(self.calls["on_train_batch_begin"])
        self._batch_end = bool(self.calls["on_train_batch_end"])

    def _restored(self) -> None:
        """Follows a callback that restored an earlier run in `on_train_begin`."""
        epoch = self.model._initial_epoch
        if epoch is not None and self._counter.variable is not None:
            # The BackupAndRestore of Keras 3 knows epochs only.
            step = epoch * (self.config.steps_per_epoch or 0)
            session_variables.write(self.session, [(self._counter.variable, step)])
        self._read_step()

    def loop_state(self) -> dict[str, Any]:
        """What belongs to a checkpoint beside the callbacks' own state."""
        self._logs.catch_up()
        is_open = self._epochs.is_open
        return LoopState(
            self.step,
            self.model.live_link.rates.state(),
            self._logs.state() if is_open else None,
            self._streaming.read(self.session) if is_open else {},
            self._epochs.origin,
        ).document()

    def parse_loop_state(self, document: Any, step: int) -> LoopState:
        """Reads what `loop_state` returned at a step; raises if it is damaged."""
        return loop_state.parse(document, step)

    def go_on_from(self, state: LoopState | None) -> None:
        """Goes on where the session is, after a restart or a recovery.

        Args:
          state: what was saved there, if anything is known.
        """
        if state is not None:
            self.model.live_link.rates.restore(state.rates)
        self._kept = state
        self._ahead = 0 if state is None else state.step
        self._epochs.go_on(self.step, None if state is None else state.origin)
        if self._epochs.is_open:
            if state is not None or self.went_back:
                self._begin_means()
        elif state is not None and state.sums is not None:
            self._end_interrupted(state.step)

    def _end_interrupted(self, step: int) -> None:
        """Ends an epoch whose end was not delivered before the checkpoint.

        The process was killed in the last events of the epoch, or other workers have
        moved the global step on into the next one.

        Args:
          step: the one that the state belongs to, within the epoch.
        """
        if self._epochs.number_of(step) >= self._epochs.number_of(self.step):
            return
        now, self.step = self.step, step
        self._begin_epoch()
        self.step = now
        if self._logs.fill(self.session):
            self._end_epoch()
        self._epochs.is_open = False

    def _read_step(self) -> None:
        if self._counter.variable is not None:
            self.step = self._counter.read(self.session)

    def before_step(self, run_context: Any) -> Any:
        now = self._now = self._steps.step_of(run_context.original_args.fetches)
        if now is None:
            return None
        counter = self._counter
        sure = self._steady and counter.exact and not counter.stale
        if now is self._plain and sure and not self._feeds:
            self._steady = False
            self._batch = 0  # a batch is open; its number is not needed
            return self._fetch.arguments
        if self._fed_rate is not None:
            self._note_feed(run_context)
        if not self._steady or counter.stale:
            self.session = run_context.session
            self._next_step()
        self._steady = False
        if self._batch < 0:
            self._batch = max(self.step - self._epochs.start, 0)
            if self._batch_begin:
                self.deliver("on_train_batch_begin", self._batch, {})
        self._fetch, self._adds = self._plan.fetch_of(now, counter)
        told = self._batch_begin or self._batch_end
        self._plain = now if self._adds and not told else None
        if self._feeds:
            rates.check_feeds(self._feeds, run_context.original_args.feed_dict)
            return self._fetch.with_feeds(self._feeds)
        return self._fetch.arguments

    def _note_feed(self, run_context: Any) -> None:
        value = rates.fed_by_loop(self._fed_rate, run_context.original_args.feed_dict)
        self.model.live_link.rates.fed_by_loop(value)

    def _next_step(self) -> None:
        """Finds out where the next step is, unless it simply follows the last."""
        failed = self._batch >= 0 and not self._waiting
        if self._counter.stale or failed:
            self._read_step()
        if failed:
            # The last step raised and the loop went on: the data has ended, and the
            # epoch with it, as in `fit` with a dataset of unknown size.
            self._batch = -1
            if self._epochs.batches:
                self._end_epoch()
                self._epochs.shift(self.step)
        elif (
            self._epochs.is_open and self._batch < 0 and self._epochs.is_over(self.step)
        ):
            # Runs through the raw session made the last steps of the epoch.
            self._end_epoch()
        if self._batch < 0 and not self._epochs.is_open:
            self._begin_epoch()
        self._waiting = False

    def after_step(self, run_context: Any) -> None:
        if self._now is None:
            return
        before = self.step
        if self._now is self._plain and not self._counter.stale:
            step = before + (self._adds or 0)
            if step < self._epochs.stop and not self.model.stop_training:
                # Fast path; must match `_finish_step`: no callback wants batches and
                # the epoch goes on.
                self.step = step
                self._batch = -1
                self._epochs.batches += 1
                self._logs.add(self._fetch, self.results)
                self._steady = True
                self._now = None
                self._state.step_is_over()
                return
        self.step = self._counter.after(
            before, self._adds, self._fetch.count(self.results), run_context
        )
        if self.step == before:
            # Gradients were handed over but not applied yet (SyncReplicasOptimizer).
            self._waiting = True
            self._without_update += 1
        else:
            self._finish_step(run_context)
        self._now = None
        self._state.step_is_over()

    def _finish_step(self, run_context: Any) -> None:
        if self._fed_rate is not None:
            self._note_feed(run_context)
        self._epochs.batches += 1
        batch = max(self._batch, self.step - 1 - self._epochs.start)
        self._batch = -1
        if self._batch_end:
            logs = self._logs.take(self._fetch, self.results)
            self.deliver("on_train_batch_end", batch, dict(logs))
        else:
            self._logs.add(self._fetch, self.results)
        over = self._epochs.is_over(self.step)
        if over and self._adds is not None:
            self.step = self._counter.confirmed(self.step, run_context)
            over = self._epochs.is_over(self.step)
        if not over and not self.model.stop_training:
            self._steady = True
            return
        self.session = run_context.session
        self._end_epoch()
        epochs = self.config.epochs
        if self.model.stop_training or (
            over and epochs is not None and self._epochs.number + 1 >= epochs
        ):
            run_context.request_stop()

    def finish(self) -> None:
        # At the end of the data a step has begun and not ended.
        stopped = self.model.stop_training or self._batch >= 0
        data_ended = self._batch >= 0 and not self._waiting
        self._batch = -1
        self._now = None
        if data_ended:
            self._read_step()
        partial = self._epochs.is_open and self._epochs.batches > 0
        if partial:
            self._end_epoch()
            if data_ended:
                self._epochs.shift(self.step)
        elif self._epochs.is_open and data_ended:
            # The epoch began, but there was no data: the next run begins it again.
            self.model.live_link.rates.undo_epoch()
        if self._without_update:
            logging.warning(
                "hookbridge: %d runs ended no batch, since they moved no global step: "
                "their gradients waited for a later update, or were dropped (as by "
                "SyncReplicasOptimizer).",
                self._without_update,
            )
        self.deliver("on_train_end", dict(self._epoch_logs))
        self._check_outside()
        short = self._epochs.falls_short(self.step, self.config.epochs)
        self._state.end(short and not stopped, epoch_ended=partial and data_ended)

    def _check_outside(self) -> None:
        outside, self._outside = self._outside, None
        if outside is not None:
            outside.warn(self.step)

    def stop_from_within(self) -> None:
        super().stop_from_within()
        if not self.in_step:
            self._coord.request_stop()  # nobody looks at the flag between steps

    # --- epochs -------------------------------------------------------------

    def _begin_epoch(self) -> None:
        self._epochs.begin(max(self.step, self._ahead))
        self._begin_means()
        self.model.live_link.rates.begin_epoch()
        self.deliver("on_epoch_begin", self._epochs.number, {})

    def _begin_means(self) -> None:
        kept, self._kept = self._kept, None
        self._logs.begin_epoch()
        if kept is not None and kept.sums is not None:
            self._logs.restore(kept.sums)
        if self._streaming:
            self._streaming.write(self.session, kept.metrics if kept else {})

    def _end_epoch(self) -> None:
        self._epochs.is_open = False
        self._logs.catch_up()
        logs = dict(self._logs.current)
        if self.validation and self.config.steps_per_epoch and self.validates_here():
            result = self.validation.run()
            logs.update(values.as_val_logs(result))
        self._epoch_logs = dict(logs)
        self.deliver("on_epoch_end", self._epochs.number, logs)
        self._check_outside()
