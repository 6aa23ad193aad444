"""One `fit` under `ParameterServerStrategy` with hooks and batch-level callbacks.

Steps are scheduled without waiting for them. Guests are told of a step when its
values are there, at most `max_lag` steps behind the one scheduled last, and then
the whole story in its usual order: `before_run`, `after_run`, the batch events.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from hookbridge import errors
from hookbridge.adapters.fit_loop.modes import NO_FEEDS, TRAIN, Mode, StepFeeds
from hookbridge.adapters.fit_loop.run import FitRun
from hookbridge.adapters.live_session.program import SessionProgram
from hookbridge.adapters.live_session.session import LiveSession
from hookbridge.adapters.parameter_server import (
    cached_reads as parameter_server_constant,
)
from hookbridge.adapters.parameter_server.delivery import Delivery, connected_workers
from hookbridge.adapters.parameter_server.exit import end_with_threads
from hookbridge.adapters.parameter_server.failures import ClusterFailure, ShieldedGuest
from hookbridge.adapters.parameter_server.session import ClusterSession
from hookbridge.adapters.parameter_server.step import ScheduledStep, SplitProgram
from hookbridge.adapters.parameter_server.stops import (
    PREEMPTED,
    LateStop,
    saves_after,
)
from hookbridge.adapters.parameter_server.values import StepLogs, StepValue

v1 = tf.compat.v1


class ParameterServerRun(Delivery, FitRun):
    """The state of one `fit` under `ParameterServerStrategy`.

    Args:
      model: the Keras model whose loop is the host.
    """

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self._members = 0
        # The step whose events are being delivered, where it was scheduled before.
        self._present: StepValue | None = None
        self._scheduled_steps = 0
        self._split: dict[int, SplitProgram] = {}
        self._is_broken = False
        self._constant = parameter_server_constant.of_model(model)
        self.set_default_lag(connected_workers())
        end_with_threads(model.distribute_strategy)

    def add_member(self, max_lag: int | None) -> None:
        """Counts a callback of this fit and its wish for `max_lag`; the least wins."""
        self._members += 1
        self.wish_lag(max_lag)

    def member_ended(self) -> None:
        """The `on_train_end` of one callback; the last one ends a run without hooks."""
        self._members -= 1
        if self._members == 0 and not self.hooks and not self._is_over:
            self.leave()

    def leave(self) -> None:
        super().leave()
        self.forget()
        self._present = None
        if self._constant is not None:
            self._constant.end()

    def _maker(self, mode: Mode) -> Callable[..., Any]:
        make = super()._maker(mode)
        original = self._originals[mode]

        def make_scheduled(force: bool = False) -> Any:
            if self._mode is not None or self._is_over or mode is TRAIN:
                return make(force)
            if self.hooks:
                self.leave()
                loop = "evaluate" if mode.name == "test" else mode.name
                raise errors.RefusedError(
                    f"Hooks cannot run in `{loop}` under "
                    "`ParameterServerStrategy`: "
                    f"{', '.join(type(h).__name__ for h in self.hooks)}. They can in "
                    "`fit`; for the other loops restore a checkpoint into a model "
                    "made outside the strategy."
                )
            return original(force)

        return make_scheduled

    def _make_step(self, mode: Mode, original: Any) -> Any:
        return ScheduledStep(self._model, original, self._names)

    # -- steps -----------------------------------------------------------------

    def _call(self, *args: Any) -> Any:
        """What Keras calls for every step."""
        try:
            if self.hooks and (self._monitored is None or not self.max_lag):
                # Hooks come first: what they want of the step is known only then.
                self.flush()
                outputs = super()._call(*args)
            else:
                outputs = self._call_ahead(args)
        except ClusterFailure as e:
            raise e.error from None
        if PREEMPTED.is_set():
            self._model.stop_training = True
        return outputs

    def _call_ahead(self, args: tuple[Any, ...]) -> Any:
        """Schedules a step whose events are delivered later."""
        self._args, self._data_ended = args, False
        self._keras_graph = v1.get_default_graph()
        try:
            value = self._schedule(self._wanted(), NO_FEEDS, ())
        except (StopIteration, tf.errors.OutOfRangeError):
            self.flush()
            raise
        except BaseException:
            self.fail()
            raise
        outputs, self._outputs = self._outputs, None
        if self.hooks:
            self.add(value, lambda: self._replay(value))
        saves = any(saves_after(hook, self._scheduled_steps) for hook in self.hooks)
        self.deliver(0 if saves else None)
        return outputs

    def _wanted(self) -> tuple[str, ...]:
        if self._graph is None:
            return ()
        if len(self._taps) != len(self._graph.step_tensors):
            self._taps = {n: item.key for n, item in self._graph.step_tensors.items()}
        return tuple(sorted(set(self._taps.values())))

    def _schedule(
        self, wanted: tuple[str, ...], into_step: StepFeeds, feeds: Sequence[Any]
    ) -> StepValue:
        assert self._step is not None
        try:
            with self._keras_graph.as_default(), self._eager_mode():
                value: StepValue = self._step.schedule(
                    self._args, wanted, into_step, feeds
                )
        except Exception as e:
            raise self._failure(e) from e
        self._scheduled_steps += value.steps
        self._outputs = StepLogs(value, self.before_fetch)
        self.note_scheduled(self._outputs)
        return value

    def _failure(self, error: BaseException) -> BaseException:
        """What to raise where a step, or scheduling one, failed with `error`."""
        if isinstance(error, (errors.HookBridgeError, ClusterFailure)):
            return error
        if isinstance(error, tf.errors.CancelledError):
            # Another step failed; that one says why.
            try:
                self._model._cluster_coordinator.join()
            except Exception as first:
                error = first
        if isinstance(error, (StopIteration, tf.errors.OutOfRangeError)):
            self._data_ended = True
            return error
        self._is_broken = True
        return ClusterFailure(error)

    def load(self, value: StepValue) -> dict[str, Any] | None:
        """The tensors of a step; None where the data ended before it."""
        try:
            with self._eager_mode():  # hooks run under a graph
                self.last_logs, taps = value.load()
        except Exception as e:
            failure = self._failure(e)
            if not self._data_ended:
                raise failure from e
            self._scheduled_steps -= value.steps
            return None
        return taps

    def _replay(self, value: StepValue) -> None:
        """Delivers to the hooks the events of a step that was scheduled before."""
        if self.load(value) is None:
            return
        assert self._graph is not None
        self._present = value
        try:
            with self._graph.as_default():
                self._monitored.run(self._graph.step_op)
        finally:
            self._present = None
        if self._monitored.should_stop():
            self.stop_asked = True

    def _run_step(self, program: SessionProgram, feeds: Sequence[Any]) -> list[Any]:
        assert self._global_step and isinstance(self._session, ClusterSession)
        wanted = self._wanted()
        into_step = self._into_step(program) if program.feeds else NO_FEEDS
        split = self._split.get(id(program))
        if split is None:
            split = self._split[id(program)] = SplitProgram(program)
        known: list[Any] = []
        if split.has_before:
            with self._session.outside():
                known = split.before(feeds)
        value = self._present
        if value is None:
            if into_step != NO_FEEDS:
                self.wish_lag(0)  # what is fed has to be known ahead of each step
            value = self._schedule(wanted, into_step, feeds)
        elif into_step != NO_FEEDS:
            raise errors.LiveSessionError(_LATE_FEED)
        taps = self.load(value)
        if taps is None:
            raise tf.errors.OutOfRangeError(None, None, "End of sequence")
        if not value.is_counted:  # a session that recovers tells of it twice
            value.is_counted = True
            self._global_step.add(value.steps)
        self._retained.update({n: taps[k] for n, k in self._taps.items() if k in taps})
        try:
            of_step = {n: taps[self._taps[n]] for n in program.closure.step_tensors}
        except KeyError as e:
            raise errors.LiveSessionError(_LATE_FETCH.format(e.args[0])) from e
        if not split.has_after:
            return split.known(known, of_step)
        with self._session.outside():
            return split.after(known, of_step)

    @property
    def ahead(self) -> int:
        """Steps that were scheduled and of which hooks have not been told."""
        told = 0 if self._global_step is None else self._global_step.value
        return self._scheduled_steps - told

    @contextlib.contextmanager
    def _consistent(self) -> Iterator[None]:
        step, ahead = self._global_step, self.ahead
        assert step is not None
        try:
            self._model._cluster_coordinator.join()
        except Exception as e:
            raise self._failure(e) from e
        step.value += ahead
        try:
            yield
        finally:
            step.value -= ahead

    # -- the session -----------------------------------------------------------

    def _session_hooks(self) -> list[Any]:
        return [
            *(ShieldedGuest(hook, self._tell_lost) for hook in self.hooks),
            LateStop(self),
        ]

    def _create_session(self) -> LiveSession:
        assert self._graph is not None and self._global_step is not None
        self._scheduled_steps = self._global_step.value + (
            0 if self._session is None else self.ahead
        )
        self._session = ClusterSession(
            self._graph,
            self._global_step,
            self._run_step,
            self._retained,
            self._consistent,
        )
        return self._session

    def _tell_lost(self, error: BaseException) -> bool:
        """Whether an error that a hook raised is one of the cluster's own."""
        known = getattr(self._session, "cluster_errors", ())
        found = any(e is error for e in known)
        self._is_broken = self._is_broken or found
        return found

    def guard(self, deliver: Callable[[], None]) -> None:
        """Runs a delivery with the rules of `_call` for what guests raise."""
        try:
            deliver()
        except ClusterFailure as e:
            self.fail()
            raise e.error from None
        except (StopIteration, tf.errors.OutOfRangeError) as e:
            if type(e) not in (StopIteration, tf.errors.OutOfRangeError):
                self.fail()
                raise
            self.stop_asked = True
        except BaseException:
            self.fail()
            raise
        if self.stop_asked:
            self._model.stop_training = True

    def end(self, hook: Any) -> None:
        self.flush()
        super().end(hook)

    def fail(self) -> None:
        coordinator = self._model._cluster_coordinator
        if self._is_over:
            return
        if coordinator is not None and not self._is_broken:
            # Nothing of this run goes on after it.
            with contextlib.suppress(Exception):
                coordinator.join()
        if self._is_broken:
            with contextlib.suppress(tf.errors.OpError):
                super().fail()
        else:
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
