"""One run of `fit`, `evaluate` or `predict` with hooks, in a v1 graph.

TensorFlow's own `MonitoredSession` drives the hooks, over Keras's session. Each
execution of Keras's function is one `run` of the `MonitoredSession`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from hookbridge import compat
from hookbridge.adapters.fit_loop import inner_loops
from hookbridge.adapters.fit_loop.monitored import not_the_end_of_data
from hookbridge.adapters.fit_loop.states import FitStates
from hookbridge.adapters.graph_fit import averages, optimizer
from hookbridge.adapters.graph_fit.functions import LoopFunction
from hookbridge.adapters.graph_fit.monitored import MonitoredHooks
from hookbridge.adapters.graph_fit.session import KerasSession
from hookbridge.adapters.graph_fit.step import StepCall
from hookbridge.patching import InstanceMethods, assign

_INNERMOST: inner_loops.Innermost[GraphFitRun] = inner_loops.Innermost()


class GraphFitRun:
    """The state of one run; nothing of it outlives the run.

    Args:
      model: the Keras model whose loop is the host.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self.hooks: list[Any] = []
        self._mode: str | None = None
        self._function: LoopFunction | None = None
        self._starters = InstanceMethods(
            model, {name: self._starter(name) for name in inner_loops.STARTERS}
        )
        self._session: KerasSession | None = None
        self._driven: MonitoredHooks | None = None
        self._last: list[Any] = []
        self._ended = 0
        self.is_over = False
        self.is_aside = False

    @classmethod
    def join(cls, model: Any, *hooks: Any) -> GraphFitRun:
        """The run that is being set up for `model`, with hooks added to it."""
        run = _INNERMOST.of(model)
        if run is None or run._mode is not None:
            if run is not None:
                run.leave()
            run = cls(model)
            _INNERMOST.take(model, run)
        run.hooks += [hook for hook in hooks if hook is not None]
        return run

    def begin(self, mode: str) -> None:
        """Called when the loop begins: `train`, `test` or `predict`."""
        if self._mode is None:
            self._mode = mode
            self._function = LoopFunction(self._model, mode, self._session_of)
            self._function.install()
            self._starters.install()

    def _starter(self, name: str) -> Callable[..., Any]:
        """A replacement for a model method that starts a loop or a step."""
        model, original = self._model, getattr(self._model, name)

        def start(*args: Any, **kwargs: Any) -> Any:
            if not inner_loops.is_running(model):
                # An exception from elsewhere ended the loop; nobody called `leave`.
                self.leave()
            # A loop over a generator makes its predictions by `predict_on_batch`.
            if self.is_over or compat.is_called_from("graph_fit_generator"):
                return original(*args, **kwargs)
            with self._aside():
                return original(*args, **kwargs)

        return start

    @contextlib.contextmanager
    def _aside(self) -> Iterator[None]:
        """Leaves the model to a loop inside this one, which may have hooks too."""
        assert self._function is not None
        self._function.remove()
        self._starters.remove()
        if self._driven is not None:
            self._driven.step_aside()
        try:
            with _INNERMOST.aside(self._model, self):
                yield
        finally:
            if not self.is_over:
                self._function.install()
                self._starters.install()
                if self._driven is not None:
                    self._driven.come_back()

    def _session_of(self, function: Any, session: Any) -> KerasSession:
        """The session that makes the callable of Keras's function."""
        mine = self._session
        if mine is None or mine.native is not session:
            mine = self._session = KerasSession(session)

        def make_step(options: Any) -> Callable[..., Any]:
            rate = optimizer.learning_rate(self._model)
            step = StepCall(session, options, self._fetches_of(function), rate)

            def call(*values: Any, run_metadata: Any = None) -> Any:
                return self._call(function, step, values, run_metadata)

            return call

        mine.make_step = make_step
        return mine

    def _fetches_of(self, function: Any) -> Any:
        """What a session loop would fetch."""
        model = self._model
        names = model.output_names if self._mode == "predict" else model.metrics_names
        return dict(zip(names, function.outputs, strict=False))

    def _call(
        self, function: Any, step: StepCall, values: Any, run_metadata: Any
    ) -> Any:
        """What Keras calls for every step."""
        assert self._session is not None and self._mode is not None
        self._session.step = step
        step.data_ended = False
        try:
            with self._session.graph.as_default():
                if self._driven is None:
                    self._driven = MonitoredHooks(
                        self._model, self.hooks, self._session
                    )
                    self._driven.start(self._mode, step)
                options = function.run_options
                result, stops = self._driven.run(step, values, options, run_metadata)
                if stops:
                    self._stop()
                self._last = result
                return result
        except (StopIteration, tf.errors.OutOfRangeError) as e:
            if step.data_ended:
                raise  # Keras ends the epoch
            # A MonitoredSession compares the exact type too.
            if type(e) in (StopIteration, tf.errors.OutOfRangeError):
                return self._stopped_by(e, step)
            self.fail()
            raise not_the_end_of_data(e) from e
        except BaseException:
            self.fail()
            raise

    def _stop(self) -> None:
        """Makes this step the last one of the loop."""
        assign(self._model, stop_training=True)
        averages.end_with_this_batch()

    def _stopped_by(self, error: BaseException, step: StepCall) -> Any:
        """Ends the loop, as a hook's error asked."""
        self._stop()
        outputs = step.take_outputs()
        if outputs is not None:
            return outputs  # the step was made: `after_run` raised
        if self._mode == "predict":
            raise error
        # Keras cannot leave its loop before a step without outputs of that step.
        return self._last or [0.0] * len(self._model.metrics_names)

    @property
    def waits(self) -> bool:
        """Whether the run goes on and its hooks have had no event yet."""
        return self._driven is None and not self.is_over

    def is_mode(self, name: str) -> bool:
        """Whether `name` is the run's loop: `train`, `test` or `predict`."""
        return self._mode == name

    def end(self, hook: Any) -> None:
        """The `end` of one hook, after a clean finish."""
        if self._driven is None or self.is_over:
            return
        try:
            self._driven.end(hook)
        except BaseException:
            self.fail()
            raise
        self._ended += 1
        if self._ended == len(self.hooks):
            try:
                self._driven.close()
            finally:
                self.leave()

    def fail(self) -> None:
        """Closes the session after an exception, without any `end`."""
        try:
            if self._driven is not None:
                self._driven.fail()
        finally:
            self.leave()

    def leave(self) -> None:
        """Gives the model its own methods back."""
        if self.is_over:
            return
        self.is_over = True
        if self._function is not None and not self.is_aside:
            self._function.remove()
            self._starters.remove()
        if self._driven is not None:
            if not self.is_aside:
                self._driven.step_aside()
            self._driven.leave()
        _INNERMOST.give_back(self._model, self)
        for hook in self.hooks:
            if isinstance(hook, FitStates):
                hook.leave()
