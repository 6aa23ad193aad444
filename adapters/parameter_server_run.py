"""One `fit` under `ParameterServerStrategy` with hooks and batch-level callbacks.

Steps are scheduled without waiting for them. What a hook or a callback is told
after a step (`after_run`, `on_train_batch_end`) waits in a queue until the step's
values are there, at most `max_lag` steps behind the step scheduled last.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from hookbridge import errors
from hookbridge.adapters.fit_run import FitRun, Guest
from hookbridge.adapters.live_session import LiveSession
from hookbridge.adapters.parameter_server_queue import Deliveries
from hookbridge.adapters.parameter_server_session import LaterResults, ScheduledSession
from hookbridge.adapters.parameter_server_step import ScheduledStep
from hookbridge.adapters.parameter_server_values import ForeignLogs, StepLogs, StepValue
from hookbridge.adapters.session_program import SessionProgram
from hookbridge.adapters.step_function import NO_FEEDS, TRAIN, Mode

v1 = tf.compat.v1

DEFAULT_MAX_LAG = 30
# Set by the preemption signal: the running fit stops after the present step.
PREEMPTED = threading.Event()

_LOST = (tf.errors.AbortedError, tf.errors.UnavailableError)


class _ClusterError(Exception):
    """Carries an error of the cluster past `MonitoredSession`'s recovery.

    A session that lost a server can be made anew; a strategy that lost one cannot.
    """

    def __init__(self, error: BaseException) -> None:
        super().__init__(str(error))
        self.error = error


class _ScheduledGuest(Guest):
    """A hook whose `after_run` is put off."""

    def __init__(self, hook: Any, run: ParameterServerRun) -> None:
        super().__init__(hook)
        for name in ("begin", "after_create_session", "before_run"):
            setattr(self, name, run.shielded(getattr(hook, name)))

        def put_off(run_context: Any, run_values: Any) -> None:
            run.put_off(hook, run_context, run_values)

        self.after_run = put_off


class _Deliver(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
    """The last hook of a run: delivers what is ready or due, inside the session.

    So TensorFlow's own rules hold for what hooks raise in a late `after_run`.
    """

    def __init__(self, run: ParameterServerRun) -> None:
        self._run = run

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self._run.deliver_in_session()
        if self._run.stop_asked:
            run_context.request_stop()


class ParameterServerRun(FitRun):
    """The state of one `fit` under `ParameterServerStrategy`.

    Args:
      model: the Keras model whose loop is the host.
    """

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.deliveries = Deliveries(DEFAULT_MAX_LAG)
        self.stop_asked = False
        self._lags: list[int] = []
        self._members = 0
        self._put_off: list[tuple[Any, Any, Any]] = []
        self._value: StepValue | None = None
        self._is_barrier = False
        self._last_logs: Any = None
        self._in_flight = 0
        self._is_broken = False

    # -- joining and leaving ---------------------------------------------------

    def add_member(self, max_lag: int | None) -> None:
        """Counts a callback of this fit and its wish for `max_lag`; the least wins."""
        self._members += 1
        if max_lag is not None:
            self._lags.append(max_lag)
            self.deliveries.max_lag = min(self._lags)

    def member_ended(self) -> None:
        """The `on_train_end` of one callback; the last one ends a run without hooks."""
        self._members -= 1
        if self._members == 0 and not self.hooks and not self._is_over:
            self.leave()

    def leave(self) -> None:
        super().leave()
        self._put_off.clear()
        self.deliveries.clear()
        self._value = self._last_logs = None

    def _maker(self, mode: Mode) -> Callable[..., Any]:
        make = super()._maker(mode)
        original = self._originals[mode]

        def make_scheduled(force: bool = False) -> Any:
            if self._mode is None and not self._is_over and mode is not TRAIN:
                if self.hooks:
                    self.leave()
                    raise errors.RefusedError(
                        f"Hooks cannot run in `{mode.name}` under "
                        "`ParameterServerStrategy`: "
                        f"{', '.join(type(h).__name__ for h in self.hooks)}. They can "
                        "in `fit`; for the other loops restore a checkpoint into a "
                        "model made outside the strategy."
                    )
                return original(force)
            return make(force)

        return make_scheduled

    def _make_step(self, mode: Mode, original: Any) -> Any:
        return ScheduledStep(self._model, original, self._names)

    # -- steps -----------------------------------------------------------------

    def _call(self, *args: Any) -> Any:
        try:
            if self.hooks:
                outputs = super()._call(*args)
            else:
                self._args = args
                self._schedule_now((), NO_FEEDS, ())
                outputs, self._outputs = self._outputs, None
        except _ClusterError as e:
            raise e.error from None
        if PREEMPTED.is_set():
            self._model.stop_training = True
        return outputs

    def _schedule(self, program: SessionProgram, feeds: Sequence[Any]) -> StepValue:
        """What a run of the session with the step does."""
        assert self._graph is not None
        if len(self._taps) != len(self._graph.step_tensors):
            self._taps = {n: item.key for n, item in self._graph.step_tensors.items()}
        into_step = self._into_step(program) if program.feeds else NO_FEEDS
        wanted = tuple(sorted(set(self._taps.values())))
        return self._schedule_now(wanted, into_step, feeds)

    def _schedule_now(
        self, wanted: tuple[str, ...], into_step: Any, feeds: Sequence[Any]
    ) -> StepValue:
        assert self._step is not None
        keras_graph = self._keras_graph or v1.get_default_graph()
        try:
            with keras_graph.as_default(), self._eager_mode():
                value: StepValue = self._step.schedule(
                    self._args, wanted, into_step, feeds
                )
        except Exception as e:
            raise self._failure(e) from e
        step = self._global_step
        if step is not None:
            step.add(value.steps)
            value.global_step = step.value
            self._is_barrier = any(_saves(hook, step.value) for hook in self.hooks)
        self._value = value
        self._outputs = StepLogs(value, self._before_fetch)
        self.deliveries.note_scheduled(self._outputs)
        return value

    def _failure(self, error: BaseException) -> BaseException:
        """What to raise where a step, or scheduling one, failed with `error`."""
        if isinstance(error, (errors.HookBridgeError, _ClusterError)):
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
        return _ClusterError(error)

    # -- deliveries ------------------------------------------------------------

    def put_off(self, hook: Any, run_context: Any, run_values: Any) -> None:
        """Notes an `after_run` that waits for its step."""
        self._put_off.append((hook, run_context, run_values))

    def deliver_in_session(self) -> None:
        """Queues the `after_run` of this step, and delivers what is ready or due."""
        waiting, self._put_off = self._put_off, []
        value = self._value
        assert value is not None

        def deliver() -> None:
            self._deliver_hooks(value, waiting)

        self.deliveries.add(value, deliver, of_hooks=True)
        self.deliveries.drain(0 if self._is_barrier else None)
        if self._data_ended:
            self.deliveries.drain(0)
            raise tf.errors.OutOfRangeError(None, None, "End of sequence")

    def _deliver_hooks(self, value: StepValue, waiting: Sequence[Any]) -> None:
        taps = self._load(value)
        if taps is None:
            return
        self._retained.update({n: taps[k] for n, k in self._taps.items() if k in taps})
        with self._as_of(value):
            for hook, run_context, values in waiting:
                results = values.results
                if isinstance(results, LaterResults):
                    values = values._replace(results=results.get())
                self.shielded(hook.after_run)(run_context, values)
        if any(run_context.stop_requested for _, run_context, _ in waiting):
            self.stop_asked = True

    def _load(self, value: StepValue) -> dict[str, Any] | None:
        """The step's tensors; None where the data ended before it."""
        try:
            logs, taps = value.load()
        except Exception as e:
            failure = self._failure(e)
            if self._data_ended:
                if self._global_step is not None:
                    self._global_step.value -= value.steps
                return None
            raise failure from e
        self._last_logs = logs
        return taps

    @contextlib.contextmanager
    def _as_of(self, value: StepValue) -> Iterator[None]:
        """The global step reads as right after that step, whatever is in flight."""
        step = self._global_step
        assert step is not None
        self._in_flight = max(0, step.value - value.global_step)
        step.value -= self._in_flight
        try:
            yield
        finally:
            step.value += self._in_flight
            self._in_flight = 0

    @contextlib.contextmanager
    def _consistent(self) -> Iterator[None]:
        step, ahead = self._global_step, self._in_flight
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

    def deliver_callback(self, logs: Any, event: Callable[[Any], None]) -> None:
        """Delivers a batch event of a callback in its turn.

        Args:
          logs: what Keras gave: the logs of a scheduled step or batch.
          event: takes the logs as a callback gets them.
        """
        value = logs if isinstance(logs, StepLogs) else ForeignLogs(logs)
        self.deliveries.note_scheduled(logs)

        def deliver() -> None:
            if isinstance(logs, StepLogs):
                if self._load(logs.value) is None:
                    return
                event(logs.python())
            else:
                event(value.python())

        self.deliveries.add(value, deliver)
        self._deliver(lambda: self.deliveries.drain(hooks=False))

    def flush(self) -> None:
        """Delivers everything, as before the end of an epoch."""
        if len(self.deliveries):
            self._deliver(lambda: self.deliveries.drain(0))

    def _deliver(self, deliver: Callable[[], None]) -> None:
        """Delivers outside the session, with the rules of `_call` for errors."""
        graph = self._graph.as_default() if self._graph else contextlib.nullcontext()
        try:
            with graph:
                deliver()
        except _ClusterError as e:
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

    def _before_fetch(self, logs: StepLogs) -> Any:
        """Keras asks for logs at the end of an epoch, before any `on_epoch_end`."""
        self.flush()
        if self._data_ended and self._load(logs.value) is None:
            return self._last_logs
        return None

    # -- the session -----------------------------------------------------------

    def _session_hooks(self) -> list[Any]:
        return [*(_ScheduledGuest(h, self) for h in self.hooks), _Deliver(self)]

    def _create_session(self) -> LiveSession:
        assert self._graph is not None and self._global_step is not None
        self._session = ScheduledSession(
            self._graph,
            self._global_step,
            self._schedule,
            self._retained,
            self._consistent,
        )
        return self._session

    def shielded(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """`method`, whose errors of the cluster do not look like a lost session."""

        def call(*args: Any) -> Any:
            try:
                return method(*args)
            except _LOST as e:
                session = self._session
                known = getattr(session, "cluster_errors", ())
                if any(e is error for error in known):
                    self._is_broken = True
                    raise _ClusterError(e) from e
                raise

        return call

    def end(self, hook: Any) -> None:
        self.flush()
        super().end(hook)

    def fail(self) -> None:
        coordinator = self._model._cluster_coordinator
        if coordinator is not None and not self._is_broken:
            # Nothing of this run goes on after it.
            with contextlib.suppress(Exception):
                coordinator.join()
        if self._is_broken:
            with contextlib.suppress(tf.errors.OpError):
                super().fail()
        else:
            super().fail()


def _saves(hook: Any, global_step: int) -> bool:
    """Whether a hook will save after the step that makes the global step this.

    Then nothing else may be in flight, so that the checkpoint is of its step.
    """
    timer = getattr(hook, "_timer", None)
    return (
        isinstance(hook, v1.train.CheckpointSaverHook)
        and timer is not None
        and bool(timer.should_trigger_for_step(global_step))
    )
