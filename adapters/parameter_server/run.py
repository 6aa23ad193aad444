"""One `fit` under `ParameterServerStrategy` with hooks and batch-level callbacks.

Steps are scheduled and nobody waits for them. When the values of a step have arrived,
guests get all events of the step in the usual order (`before_run`, `after_run`, the
batch events). By then at most `max_lag` later steps have been scheduled.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from hookbridge import errors
from hookbridge.adapters.fit_loop.modes import TRAIN, Mode
from hookbridge.adapters.fit_loop.run import FitRun
from hookbridge.adapters.fit_loop.step_feeds import NO_FEEDS, StepFeeds
from hookbridge.adapters.live_session.program import SessionProgram
from hookbridge.adapters.live_session.session import LiveSession
from hookbridge.adapters.live_session.split_program import SplitProgram
from hookbridge.adapters.parameter_server import cached_reads
from hookbridge.adapters.parameter_server.delivery import Delivery, connected_workers
from hookbridge.adapters.parameter_server.exit import end_with_threads
from hookbridge.adapters.parameter_server.preemption import PREEMPTED
from hookbridge.adapters.parameter_server.scheduled import END_OF_DATA, ScheduledSteps
from hookbridge.adapters.parameter_server.session import ClusterSession
from hookbridge.adapters.parameter_server.step import ScheduledStep
from hookbridge.adapters.parameter_server.stops import (
    ClusterFailure,
    LateStop,
    ShieldedHook,
    saves_after,
)
from hookbridge.adapters.parameter_server.values import StepLogs, StepValue
from hookbridge.patching import assign
from hookbridge.structures import RecentlyUsed

v1 = tf.compat.v1


class ParameterServerRun(FitRun):
    """The state of one `fit` under `ParameterServerStrategy`.

    Args:
      model: the Keras model whose loop is the host.

    Attributes:
      delivery: the events that guests have not got yet.
    """

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self._members = 0
        # A step scheduled earlier whose events are being delivered now, or None.
        self._present: StepValue | None = None
        self._scheduled = ScheduledSteps(model)
        self._split = RecentlyUsed()
        self._cached = cached_reads.of_model(model)
        self.delivery = Delivery(self._guard, self._load, connected_workers())
        end_with_threads(model.distribute_strategy)

    def add_member(self, max_lag: int | None) -> None:
        """Counts a callback of this fit and notes its wish for `max_lag`."""
        self._members += 1
        self.delivery.wish_lag(max_lag)

    def member_ended(self) -> None:
        """A callback had its `on_train_end`; the last one ends a run without hooks."""
        self._members -= 1
        if self._members == 0 and not self.hooks and not self.is_over:
            self.hosting.leave()

    def left(self) -> None:
        super().left()
        self._scheduled.leave()
        self.delivery.forget()
        self._present = None
        if self._cached is not None:
            self._cached.remove()

    def make_step(self, mode: Mode, make: Callable[..., Any]) -> Any:
        """See `Hosted`.

        Raises:
          errors.RefusedError: there are hooks, and the loop is not `fit`.
        """
        if mode is TRAIN:
            return ScheduledStep(self._model, make)
        if self.hooks:
            loop = "evaluate" if mode.name == "test" else mode.name
            raise errors.RefusedError(
                f"Hooks cannot run in `{loop}` under `ParameterServerStrategy`: "
                f"{', '.join(type(h).__name__ for h in self.hooks)}. They can in "
                "`fit`; for the other loops restore a checkpoint into a model made "
                "outside the strategy.",
                see="parameter servers",
            )
        return None

    # -- steps -----------------------------------------------------------------

    def call(self, *args: Any) -> Any:
        """What Keras calls for every step."""
        try:
            if self.hooks and (self._monitored is None or not self.delivery.max_lag):
                # Hooks come first: the step is scheduled with what they fetch.
                self.delivery.flush()
                outputs = super().call(*args)
            else:
                outputs = self._call_ahead(args)
        except ClusterFailure as e:
            raise e.error from None
        if PREEMPTED.is_set():
            assign(self._model, stop_training=True)
        return outputs

    def _call_ahead(self, args: tuple[Any, ...]) -> Any:
        """Schedules a step whose events are delivered later."""
        self._args, self._data_ended = args, False
        self._keras_graph = v1.get_default_graph()
        try:
            value = self._schedule(NO_FEEDS, ())
        except END_OF_DATA:
            self.delivery.flush()
            raise
        except BaseException:
            self.fail()
            raise
        outputs, self._outputs = self._outputs, None
        if self.hooks:
            self.delivery.add(value, lambda: self._replay(value))
        saves = any(saves_after(hook, self._scheduled.count) for hook in self.hooks)
        self.delivery.deliver(0 if saves else None)
        return outputs

    def _schedule(self, into_step: StepFeeds, feeds: Sequence[Any]) -> StepValue:
        tapped = {} if self._graph is None else self._graph.tapped
        keys = tuple(sorted(set(tapped.values())))
        try:
            with self._keras_graph.as_default(), self._eager_mode():
                value: StepValue = self.hosting.step.schedule(
                    self._args, keys, into_step, feeds
                )
        except Exception as e:
            failure = self._scheduled.failure(e)
            self._data_ended = isinstance(failure, END_OF_DATA)
            raise failure from e
        self._scheduled.count += value.steps
        self._outputs = StepLogs(value, self.delivery.before_fetch)
        self.delivery.note_scheduled(self._outputs)
        return value

    def _load(self, value: StepValue) -> dict[str, Any] | None:
        """The tensors of a step; None if the data ended before it."""
        found = self._scheduled.load(value)
        if found is None:
            self._data_ended = True
            return None
        self.delivery.last_logs, tapped = found
        return tapped

    def _replay(self, value: StepValue) -> None:
        """Gives the hooks the events of a step that was scheduled earlier."""
        if self._load(value) is None:
            return
        assert self._graph is not None
        self._present = value
        try:
            with self._graph.as_default():
                self._monitored.run(self._graph.loop_fetches)
        finally:
            self._present = None
        if self._monitored.should_stop():
            self.delivery.stop_asked = True

    def _run_step(self, program: SessionProgram, feeds: Sequence[Any]) -> list[Any]:
        assert self.global_step and isinstance(self._session, ClusterSession)
        into_step = self._into_step(program) if program.feeds else NO_FEEDS
        split: SplitProgram | None = self._split.get(id(program))
        if split is None:
            split = SplitProgram(program)  # holds the program, so its id is not reused
            self._split.add(id(program), split)
        known: list[Any] = []
        if split.has_before:
            with self._session.outside():
                known = split.before(feeds)
        value = self._present
        if value is None:
            if into_step != NO_FEEDS:
                self.delivery.wish_lag(
                    0
                )  # what is fed has to be known ahead of each step
            value = self._schedule(into_step, feeds)
        elif into_step != NO_FEEDS:
            raise errors.LiveSessionError(_LATE_FEED, see="parameter servers")
        tapped = self._load(value)
        if tapped is None:
            raise tf.errors.OutOfRangeError(None, None, "End of sequence")
        if not value.is_counted:  # a recovering session delivers the step twice
            value.is_counted = True
            self.global_step.add(value.steps)
        assert self._graph is not None
        keys = self._graph.tapped
        self._last_values.update({n: tapped[k] for n, k in keys.items() if k in tapped})
        try:
            of_step = {n: tapped[keys[n]] for n in program.closure.step_tensors}
        except KeyError as e:
            raise errors.LiveSessionError(
                _LATE_FETCH.format(e.args[0]), see="parameter servers"
            ) from e
        if not split.has_after:
            return split.known(known, of_step)
        with self._session.outside():
            return split.after(known, of_step)

    @property
    def _ahead(self) -> int:
        """The number of scheduled steps whose events hooks have not got yet."""
        told = 0 if self.global_step is None else self.global_step.value
        return self._scheduled.count - told

    @contextlib.contextmanager
    def _consistent(self) -> Iterator[None]:
        step, ahead = self.global_step, self._ahead
        assert step is not None
        try:
            self._scheduled.wait()
        except END_OF_DATA:
            self._data_ended = True
            raise
        step.value += ahead
        try:
            yield
        finally:
            step.value -= ahead

    # -- the session -----------------------------------------------------------

    def _session_hooks(self) -> list[Any]:
        return [
            *(ShieldedHook(hook, self._tell_lost) for hook in self.hooks),
            LateStop(lambda: self._ahead, self._ask_stop),
        ]

    def _create_session(self) -> LiveSession:
        assert self._graph is not None and self.global_step is not None
        self._scheduled.count = self.global_step.value + (
            0 if self._session is None else self._ahead
        )
        self._session = ClusterSession(
            self._graph,
            self.global_step,
            self._run_step,
            self._last_values,
            self._consistent,
        )
        return self._session

    def _tell_lost(self, error: BaseException) -> bool:
        """Notes an error that a hook raised; returns whether it is the cluster's."""
        known = getattr(self._session, "cluster_errors", ())
        found = any(e is error for e in known)
        self._scheduled.is_broken |= found
        return found

    def _ask_stop(self) -> None:
        self.delivery.stop_asked = True

    def _guard(self, deliver: Callable[[], None]) -> None:
        """Runs a delivery; errors of guests have the same effects as in `call`."""
        try:
            deliver()
        except ClusterFailure as e:
            self.fail()
            raise e.error from None
        except END_OF_DATA as e:
            if type(e) not in END_OF_DATA:
                self.fail()
                raise
            self.delivery.stop_asked = True
        except BaseException:
            self.fail()
            raise
        if self.delivery.stop_asked:
            assign(self._model, stop_training=True)

    def end(self, hook: Any) -> None:
        self.delivery.flush()
        super().end(hook)

    def fail(self) -> None:
        if self.is_over:
            return
        if not self._scheduled.is_broken:
            # No step of this run may go on after the run.
            with contextlib.suppress(Exception):
                self._model._cluster_coordinator.join()
            super().fail()
            return
        with contextlib.suppress(tf.errors.OpError):
            super().fail()


_LATE_FEED = (
    "A hook feeds a tensor of the training step, or `learning_rate:0`, and did not in "
    "the first step: under `ParameterServerStrategy` the step has been scheduled "
    "already. Call `hb.as_callbacks(..., max_lag=0)`, or feed from the first step on."
)
_LATE_FETCH = (
    "A hook fetches `{}`, a tensor of the training step that nobody asked for when the "
    "step was scheduled. Look it up in `begin` with "
    "`tf.compat.v1.get_default_graph().get_tensor_by_name`, or call "
    "`hb.as_callbacks(..., max_lag=0)`."
)
