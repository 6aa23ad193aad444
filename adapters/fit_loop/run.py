"""One run of `fit`, `evaluate` or `predict` with hooks.

The hooks are driven by TensorFlow's own `MonitoredSession`, over a live session
instead of a session on a graph. Which methods run after which failure, how
fetches, feeds and options of several hooks are merged, what happens after an
`AbortedError`: all of that is TensorFlow's code.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from hookbridge import compat
from hookbridge.adapters.fit_loop import refusals
from hookbridge.adapters.fit_loop.hosting import HostedRun
from hookbridge.adapters.fit_loop.modes import (
    NO_FEEDS,
    PREDICT,
    TRAIN,
    StepFeeds,
)
from hookbridge.adapters.fit_loop.monitored import Creator, Guest, not_the_end_of_data
from hookbridge.adapters.fit_loop.states import FitStates
from hookbridge.adapters.live_session import variables as live_variables
from hookbridge.adapters.live_session.global_step import GlobalStep
from hookbridge.adapters.live_session.graph import LiveGraph
from hookbridge.adapters.live_session.program import SessionProgram
from hookbridge.adapters.live_session.session import LiveSession

v1 = tf.compat.v1


class FitRun(HostedRun):
    """The state of one run; nothing of it outlives the run.

    Args:
      model: the Keras model whose loop is the host.
    """

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self._monitored: Any = None
        self._graph: LiveGraph | None = None
        self._session: LiveSession | None = None
        self._retained: dict[str, Any] = {}
        self._taps: dict[str, str] = {}
        self._eager_mode = compat.private("eager_mode")
        self._args: tuple[Any, ...] = ()
        self._outputs: Any = None
        self._keras_graph: Any = None
        self._ended = 0
        self._has_outputs = False
        self._data_ended = False
        self._is_stopped = False

    def _call(self, *args: Any) -> Any:
        """What Keras calls for every step."""
        assert self._step is not None
        if self._is_stopped:
            # Keras 2 has no other way to end `evaluate` and `predict`.
            raise tf.errors.OutOfRangeError(None, None, "A hook asked for a stop.")
        self._keras_graph = v1.get_default_graph()
        self._args = args
        self._data_ended = False
        try:
            if self._monitored is None:
                self._start()
            assert self._graph is not None
            with self._graph.as_default():
                self._monitored.run(self._graph.step_op)
                if self._monitored.should_stop():
                    self._stop()
        except (StopIteration, tf.errors.OutOfRangeError) as e:
            if self._data_ended:
                raise  # Keras ends the epoch
            # By exact type, as in a MonitoredSession.
            if type(e) in (StopIteration, tf.errors.OutOfRangeError):
                return self._stopped_by(e)
            self.fail()
            raise not_the_end_of_data(e) from e
        except BaseException:
            self.fail()
            raise
        self._has_outputs = True
        outputs, self._outputs = self._outputs, None
        return outputs

    def _stop(self) -> None:
        """Makes this step the last one of the loop."""
        assert self._mode is not None
        if self._mode is TRAIN or hasattr(self._model, self._mode.stop):
            setattr(self._model, self._mode.stop, True)
        self._is_stopped = self._mode is not TRAIN

    def _stopped_by(self, error: BaseException) -> Any:
        """A hook ended the run cleanly by its error; Keras would end the epoch."""
        self._stop()
        outputs, self._outputs = self._outputs, None
        if outputs is not None:
            return outputs  # the step was made: `after_run` raised
        if not self._has_outputs and self._mode is not PREDICT:
            # Without any logs Keras 2 blames the input pipeline.
            return self._model.get_metrics_result()
        raise error

    def _start(self) -> None:
        """Traces the step, then `begin` and `after_create_session`."""
        assert self._step is not None
        self._step.discover(*self._args)
        model = self._model
        steps = getattr(model, "_steps_per_execution", None)
        if steps is None:
            steps = getattr(model, "steps_per_execution", 1)
        several = live_variables.as_int(1 if steps is None else steps) > 1
        # The count is read only where a call makes several steps.
        self._counts = several and self._mode is TRAIN
        self._global_step = GlobalStep(model)
        for hook in self.hooks:
            refusals.check_start(hook, self._global_step.value)
        optimizer = getattr(model, "optimizer", None)
        self._rate = live_variables.learning_rate_variable(optimizer)
        self._graph = LiveGraph(
            self._names,
            live_variables.model_variables(model),
            self._global_step.variable,
            self._rate,
        )
        try:
            with self._graph.as_default():
                self._monitored = v1.train.MonitoredSession(
                    session_creator=Creator(self._create_session, self._scaffold()),
                    hooks=self._session_hooks(),
                )
        except (StopIteration, tf.errors.OutOfRangeError) as e:
            raise not_the_end_of_data(e) from e

    def _scaffold(self) -> Any:
        for hook in self.hooks:
            scaffold = getattr(hook, "_scaffold", None)
            if isinstance(scaffold, v1.train.Scaffold):
                return scaffold
        return v1.train.Scaffold()

    def _session_hooks(self) -> list[Any]:
        return [Guest(hook) for hook in self.hooks]

    def _create_session(self) -> LiveSession:
        assert self._graph is not None and self._global_step is not None
        self._session = LiveSession(
            self._graph, self._global_step, self._run_step, self._retained
        )
        return self._session

    def _run_step(self, program: SessionProgram, feeds: Sequence[Any]) -> list[Any]:
        assert self._graph and self._step and self._global_step
        if len(self._taps) != len(self._graph.step_tensors):
            self._taps = {n: item.key for n, item in self._graph.step_tensors.items()}
        into_step = self._into_step(program) if program.feeds else NO_FEEDS
        # Keras's function belongs under the graph, and so the strategy, that
        # `fit` runs under; hooks run under the live graph.
        with self._keras_graph.as_default(), self._eager_mode():
            before = self._step.steps_made if self._counts else 0
            try:
                fetched: list[Any]
                outputs, fetched, values = self._step.run(
                    self._args, program, feeds, self._taps, into_step
                )
            except (StopIteration, tf.errors.OutOfRangeError):
                self._data_ended = True
                raise
            self._global_step.add(self._steps_of_a_call(before))
        self._retained.update(values)
        self._outputs = outputs
        return fetched

    def _into_step(self, program: SessionProgram) -> StepFeeds:
        assert self._graph is not None
        rate, tensors = None, {}
        for index, tensor in enumerate(program.feeds):
            if tensor.name == self._graph.learning_rate_name:
                rate = (self._rate, index)
            elif tensor.op.name in self._graph.step_tensors:
                tensors[self._graph.step_tensors[tensor.op.name].key] = index
        return StepFeeds(rate, tensors)

    def _steps_of_a_call(self, before: int) -> int:
        """How many steps the call just made has trained."""
        if self._mode is not TRAIN:
            return 0
        return self._step.steps_made - before if self._counts else 1

    def end(self, hook: Any) -> None:
        """The `end` of one hook, after a clean finish."""
        if self._graph is None or self._is_over:
            return
        try:
            with self._graph.as_default():
                hook.end(self._session)
        except BaseException:
            self.fail()
            raise
        self._ended += 1
        if self._ended == len(self.hooks):
            self._close()

    def _close(self) -> None:
        assert self._graph is not None and self._global_step is not None
        self._global_step.remember()
        try:
            with self._graph.as_default():
                self._monitored.close()
        finally:
            self.leave()

    def fail(self) -> None:
        """Closes the session after an exception, without any `end`."""
        try:
            if self._monitored is not None and self._graph is not None:
                with self._graph.as_default():
                    self._monitored.__exit__(*sys.exc_info())
            elif self._session is not None:  # `after_create_session` failed
                self._session.close()
        finally:
            self.leave()

    def leave(self) -> None:
        super().leave()
        for hook in self.hooks:
            if isinstance(hook, FitStates):
                hook.leave()
        # An iterator that waits for the garbage collector stops the process for up
        # to a minute when it comes (docs/decisions/0005-iterators-die-young.md).
        self._args = ()
