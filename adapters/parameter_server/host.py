"""`fit` under `ParameterServerStrategy` as the host of hooks and callbacks.

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
from hookbridge.adapters.fit_loop.host import FitHost
from hookbridge.adapters.fit_loop.tapped_function import NO_FEEDS, StepFeeds
from hookbridge.adapters.hooked_loop.modes import TRAIN, Mode
from hookbridge.adapters.hooked_loop.monitored import (
    END_OF_DATA,
    ClusterFailure,
    LaterStop,
)
from hookbridge.adapters.live_session.program import SessionProgram, SplitProgram
from hookbridge.adapters.live_session.session import LiveSession
from hookbridge.adapters.parameter_server.cluster_session import (
    ClusterSession,
    ShieldedHook,
    saves_after,
)
from hookbridge.adapters.parameter_server.event_queue import (
    EventQueue,
    connected_workers,
)
from hookbridge.adapters.parameter_server.exit import PREEMPTED, end_with_threads
from hookbridge.adapters.parameter_server.keras_calls import (
    cached_reads,
    no_empty_epochs,
)
from hookbridge.adapters.parameter_server.scheduled_step import ScheduledStep
from hookbridge.adapters.parameter_server.step_values import StepLogs, StepValue
from hookbridge.adapters.parameter_server.steps_in_flight import StepsInFlight
from hookbridge.ground.patching import assign
from hookbridge.ground.structures import RecentlyUsed


class ParameterServerHost(FitHost):
    """One `fit` under `ParameterServerStrategy`."""

    native_step = None

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self._members = 0
        # A step scheduled earlier whose events are being delivered now, or None.
        self._present: StepValue | None = None
        self._scheduled = StepsInFlight(model)
        self._split = RecentlyUsed()
        self.events = EventQueue(self._guard, self._load, connected_workers())
        self._patches = contextlib.ExitStack()
        self._patches.enter_context(cached_reads(model))
        self._patches.enter_context(no_empty_epochs(model, self._delivered))
        end_with_threads(model.distribute_strategy)

    def add_member(self, max_lag: int | None) -> None:
        self._members += 1
        self.events.limit_lag(max_lag)

    def member_ended(self) -> None:
        """A callback had its `on_train_end`; the last one ends a run without hooks."""
        self._members -= 1
        if self._members == 0 and not self.loop.hooks:
            self.loop.leave()

    def _make_step(
        self, mode: Mode, make: Callable[..., Any], owner: Any = None
    ) -> Any:
        if mode is TRAIN:
            return ScheduledStep(self.model, make)
        hooks = self.loop.hooks
        if hooks:
            loop = "evaluate" if mode.name == "test" else mode.name
            raise errors.RefusedError(
                f"Hooks cannot run in `{loop}` under `ParameterServerStrategy`: "
                f"{', '.join(type(h).__name__ for h in hooks)}. They can in "
                "`fit`; for the other loops restore a checkpoint into a model made "
                "outside the strategy.",
                see="parameter servers",
            )
        return None

    def _make_session(self) -> LiveSession:
        step = self._global_step
        ahead = 0 if self.session is None else self._ahead
        self._scheduled.count = step.value + ahead
        return ClusterSession(
            self._consistent, self._graph, step, self._run_step, self._last_values
        )

    def call(self, args: tuple[Any, ...]) -> Any:
        loop = self.loop
        if loop.hooks and (not loop.has_begun or not self.events.max_lag):
            # Hooks come first: the step is scheduled with what they fetch.
            self.events.flush()
            outputs = loop.step(args)
        else:
            outputs = self._call_ahead(args)
        if PREEMPTED.is_set():
            self.loop.stop()
        return outputs

    def members(self, hooks: Sequence[Any]) -> list[Any]:
        return [
            *(ShieldedHook(hook, self._note_lost) for hook in hooks),
            LaterStop(lambda: self._ahead, self._ask_stop),
        ]

    def _call_ahead(self, args: tuple[Any, ...]) -> Any:
        """Schedules a step whose events are delivered later."""
        if any(each.has_saved for each in self.loop.states):
            # What callbacks do in a step with a checkpoint comes before the next step.
            self.flush()
            self.loop.settle()
        self.prepare(args)
        self.data_ended = False
        loop = self.loop
        try:
            value = self._schedule(NO_FEEDS, ())
        except END_OF_DATA:
            self.events.flush()
            raise
        except BaseException:
            loop.fail()
            raise
        outputs = self._take_outputs()
        if loop.hooks:
            self.events.add(value, lambda: self._replay(value))
        saves = any(saves_after(hook, self._scheduled.count) for hook in loop.hooks)
        self.events.deliver(0 if saves else None)
        return outputs

    def _schedule(self, into_step: StepFeeds, feeds: Sequence[Any]) -> StepValue:
        tapped = {} if self._global_step is None else self._graph.tapped
        keys = tuple(sorted(set(tapped.values())))
        try:
            with self._outside.as_default(), self._eager_mode():
                value: StepValue = self.installation.step.schedule(
                    self._args, keys, into_step, feeds
                )
        except Exception as e:
            failure = self._scheduled.failure(e)
            self.data_ended = isinstance(failure, END_OF_DATA)
            raise failure from e
        self._scheduled.count += value.steps
        self._outputs = StepLogs(value, self.events.before_fetch)
        self.events.note_scheduled(self._outputs)
        return value

    def _load(self, value: StepValue) -> dict[str, Any] | None:
        """The tensors of a step; None if the data ended before it."""
        result = self._scheduled.load(value)
        if result is None:
            self.data_ended = True
            return None
        self.events.last_logs, tapped = result
        return tapped

    def _delivered(self) -> int:
        self.events.flush()
        return self._scheduled.delivered

    def _replay(self, value: StepValue) -> None:
        """Gives the hooks the events of a step that was scheduled earlier."""
        if self._load(value) is None:
            return
        self._present = value
        try:
            if self.loop.replay()[1]:
                self._ask_stop()
        finally:
            self._present = None

    def _run_step(self, program: SessionProgram, feeds: Sequence[Any]) -> list[Any]:
        into_step = self._into_step(program)
        split: SplitProgram | None = self._split.get(id(program))
        if split is None:
            split = SplitProgram(program)  # holds the program, so its id is not reused
            self._split.add(id(program), split)
        with self.session.outside():
            early = split.before(feeds)
        value = self._present
        if value is None:
            if into_step != NO_FEEDS:
                # What is fed has to be known ahead of each step.
                self.events.limit_lag(0)
            value = self._schedule(into_step, feeds)
        elif into_step != NO_FEEDS:
            raise errors.LiveSessionError(_LATE_FEED, see="parameter servers")
        tapped = self._load(value)
        if tapped is None:
            raise tf.errors.OutOfRangeError(None, None, "End of sequence")
        if not value.is_counted:  # a recovering session delivers the step twice
            value.is_counted = True
            self._global_step.add(value.steps)
        keys = self._graph.tapped
        self._last_values.update({n: tapped[k] for n, k in keys.items() if k in tapped})
        try:
            of_step = {n: tapped[keys[n]] for n in program.closure.step_tensors}
        except KeyError as e:
            raise errors.LiveSessionError(
                _LATE_FETCH.format(e.args[0]), see="parameter servers"
            ) from e
        with self.session.outside():
            return split.after(early, of_step)

    @property
    def _ahead(self) -> int:
        """The number of scheduled steps whose events hooks have not got yet."""
        step = self._global_step
        return self._scheduled.count - (0 if step is None else int(step.value))

    @contextlib.contextmanager
    def _consistent(self) -> Iterator[None]:
        step, ahead = self._global_step, self._ahead
        try:
            self._scheduled.wait()
        except END_OF_DATA:
            self.data_ended = True
            raise
        step.value += ahead
        try:
            yield
        finally:
            step.value -= ahead

    def stop(self) -> None:
        assign(self.model, stop_training=True)

    def _note_lost(self) -> None:
        self._scheduled.is_broken = True

    def _ask_stop(self) -> None:
        self.events.stop_asked = True

    def _guard(self, deliver: Callable[[], None]) -> None:
        """Runs a delivery; errors of guests have the same effects as in a step."""
        try:
            deliver()
        except ClusterFailure as e:
            self.loop.fail()
            raise e.error from None
        except END_OF_DATA as e:
            if type(e) not in END_OF_DATA:
                self.loop.fail()
                raise
            self._ask_stop()
        except BaseException:
            self.loop.fail()
            raise
        if self.events.stop_asked:
            self.loop.stop()

    def flush(self) -> None:
        self.events.flush()

    @contextlib.contextmanager
    def failing(self) -> Iterator[None]:
        if not self._scheduled.is_broken:
            # No step of this run may go on after the run.
            with contextlib.suppress(Exception):
                self.model._cluster_coordinator.join()
            yield
            return
        with contextlib.suppress(tf.errors.OpError):
            yield

    def suspend(self) -> None:
        self.installation.suspend()

    def resume(self) -> None:
        self.installation.resume()

    def leave(self) -> None:
        super().leave()
        self._patches.close()
        self._scheduled.leave()
        self.events.forget()
        self._present = None


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
