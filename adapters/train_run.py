"""Callbacks in a training session: epochs, batches, validation, the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hookbridge.adapters import (
    callback_checks,
    learning_rate,
    log_sources,
    session_variables,
    values,
)
from hookbridge.adapters.epoch_logs import SIZE, EpochLogs, FetchPlan
from hookbridge.adapters.session_run import SessionRun
from hookbridge.adapters.state_keeper import StateKeeper
from hookbridge.adapters.step_graph import Step, StepGraph
from hookbridge.adapters.validation_run import ValidationRun

if TYPE_CHECKING:
    from hookbridge.adapters.callback_group import CallbackGroup


_MOST_PENDING = 1000


class TrainRun(SessionRun):
    """A run on a training graph.

    Args:
      group: the configuration.
      graph: the graph, not finalized.
      counter: the global step, or None.
      steps: which runs are training steps.
    """

    def __init__(
        self, group: CallbackGroup, graph: Any, counter: Any, steps: StepGraph
    ) -> None:
        super().__init__(group, graph)
        self._counter = counter
        self._steps = steps
        sources = log_sources.find_sources(
            group.logs, callback_checks.monitored(group.callbacks), graph
        )
        self._plan = FetchPlan(counter, sources, steps.tails())
        self._logs = EpochLogs(sources)
        self.metrics = [s.key for s in sources if s.key != SIZE]
        self._rates = learning_rate.find(graph, group.learning_rate)
        self.validation = ValidationRun(self, group.validation)
        self.make_model(
            self.metrics,
            self._rates,
            self.validation.run if self.validation else None,
        )
        self._epoch = 0
        self._epoch_start = 0
        # Where epochs are counted from: they shift when data ends within one.
        self._first_epoch = 0
        self._first_step = 0
        self._in_epoch = False
        self._batch = -1  # number of the open batch, -1 if none is open
        self._now: Step | None = None
        # Results of steps that are not in the logs yet: the sums can wait until
        # somebody looks.
        self._pending: list[tuple[Step, Any]] = []
        self._state = StateKeeper(self)
        self._kept: Any = None  # means of the epoch that a restart interrupted
        self._waiting = False  # for the step of the open batch to be applied
        self._batch_begin = self._batch_end = True
        self._epoch_logs: dict[str, Any] = {}
        self._batches_in_epoch = 0

    def check(self, callback: Any) -> None:
        callback_checks.check_training(
            callback,
            self.group,
            metrics=self.metrics,
            validation=self.validation,
            rates=self._rates,
            not_cloned=self.model.not_cloned,
        )

    @property
    def in_step(self) -> bool:
        """Whether a training step is running whose events are not all delivered."""
        return self._now is not None

    # --- the session --------------------------------------------------------

    def created(self, coord: Any) -> None:
        self._read_step()
        self._batch = -1
        if self.started:
            # Recovered: the step is that of the checkpoint. What was open is
            # begun anew by the next training step.
            if self.step < self._epoch_start:
                self._in_epoch = False
                self._first_epoch = self._first_step = 0
            self._state.restore()
            return
        self.started = True
        self._batch_begin = bool(self.calls["on_train_batch_begin"])
        self._batch_end = bool(self.calls["on_train_batch_end"])
        self._logs.begin_epoch()
        self.deliver("on_train_begin", {})
        self._restored()
        self._state.begin()
        epochs, per_epoch = self.group.epochs, self.group.steps_per_epoch
        if epochs is not None and per_epoch and self.step >= epochs * per_epoch:
            # Nothing is left to do, as when `fit` begins behind its last epoch.
            coord.request_stop()

    def _restored(self) -> None:
        """Follows a callback that restored an earlier run in `on_train_begin`."""
        epoch = self.model._initial_epoch
        if epoch is not None and self._counter is not None:
            # The BackupAndRestore of Keras 3 knows epochs only.
            step = epoch * (self.group.steps_per_epoch or 0)
            session_variables.write(self.session, [(self._counter, step)])
        self._read_step()

    def loop_state(self) -> dict[str, Any]:
        """What belongs to a checkpoint beside the callbacks' own state, as JSON."""
        self._take_pending()
        return {
            "learning_rates": self.model.optimizer.state(),
            "epoch_logs": self._logs.state() if self._in_epoch else None,
        }

    def set_loop_state(self, state: Any) -> None:
        """Goes on from what `loop_state` returned."""
        if isinstance(state, dict):
            self.model.optimizer.restore(state.get("learning_rates"))
            self._kept = state.get("epoch_logs")

    def _read_step(self) -> None:
        if self._counter is not None:
            self.step = int(self.session.run(self._counter))

    def before_step(self, run_context: Any) -> Any:
        now = self._now = self._steps.step_of(run_context.original_args.fetches)
        if now is None:
            return None
        self.session = run_context.session
        if self._batch >= 0 and not self._waiting:
            # The last step raised and the loop went on: its data had ended, which
            # ends the epoch, as in `fit` with a dataset of unknown size.
            self._batch = -1
            if self._batches_in_epoch:
                self._end_epoch()
                self._first_epoch, self._first_step = self._epoch + 1, self.step
        if self._batch < 0:
            if not self._in_epoch:
                self._begin_epoch()
            self._batch = self.step - self._epoch_start
            if self._batch_begin:
                self.deliver("on_train_batch_begin", self._batch, {})
        self._waiting = False
        return self._plan.arguments(now, self.model.optimizer.feeds)

    def after_step(self, run_context: Any) -> None:
        if self._now is None:
            return
        self._finish_step(self._now, run_context)
        self._now = None
        self._state.step_is_over()

    def _finish_step(self, now: Step, run_context: Any) -> None:
        self.session = run_context.session
        before = self.step
        count = self._plan.count(now, self.results)
        if count is not None:
            self.step = count
        elif self._counter is not None and (self._steps.movers or self._steps.pushes):
            self._read_step()
        else:
            self.step += 1
        if self.step == before:
            # A replica's gradients were handed over but not applied yet
            # (SyncReplicasOptimizer): the step goes on in the next run.
            self._waiting = True
            return
        self._pending.append((now, self.results))
        self._batches_in_epoch += 1
        batch = max(self._batch, self.step - 1 - self._epoch_start)
        self._batch = -1
        if self._batch_end:
            self._take_pending()
            self.deliver("on_train_batch_end", batch, dict(self._logs.current))
        elif len(self._pending) >= _MOST_PENDING:
            self._take_pending()
        per_epoch = self.group.steps_per_epoch
        over = per_epoch is not None and self.step - self._epoch_start >= per_epoch
        if not over and not self.model.stop_training:
            return
        self._end_epoch()
        epochs = self.group.epochs
        if self.model.stop_training or (
            over and epochs is not None and self._epoch + 1 >= epochs
        ):
            run_context.request_stop()

    def finish(self) -> None:
        self._batch = -1
        if self._in_epoch and self._batches_in_epoch:
            self._end_epoch()
        self.deliver("on_train_end", dict(self._epoch_logs))
        self._state.end()

    def _take_pending(self) -> None:
        pending, self._pending = self._pending, []
        columns = None
        if len(pending) > 1 and len({step for step, _ in pending}) == 1:
            columns = self._plan.columns(pending[0][0], [r for _, r in pending])
        if columns is not None:
            self._logs.update_all(columns)
            return
        for step, results in pending:
            self._logs.update(self._plan.unpack(step, results))

    # --- epochs -------------------------------------------------------------

    def _begin_epoch(self) -> None:
        per_epoch = self.group.steps_per_epoch
        passed = values.epoch_of(self.step - self._first_step, per_epoch)
        self._epoch = self._first_epoch + passed
        self._epoch_start = self._first_step + passed * (per_epoch or 0)
        self._in_epoch = True
        self._batches_in_epoch = 0
        self._pending.clear()
        self._logs.begin_epoch()
        if self._kept is not None:
            # This epoch was begun before the restart.
            self._logs.restore(self._kept)
            self._kept = None
        if self._logs.resets:
            self.session.run(self._logs.resets)
        self.deliver("on_epoch_begin", self._epoch, {})

    def _end_epoch(self) -> None:
        self._in_epoch = False
        self._take_pending()
        logs = dict(self._logs.current)
        if self.validation and self.group.steps_per_epoch:
            result = self.validation.run()
            logs.update(values.as_val_logs(result))
        self._epoch_logs = dict(logs)
        self.deliver("on_epoch_end", self._epoch, logs)
