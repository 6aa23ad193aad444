"""One run of `fit`, `evaluate` or `predict` with hooks.

TensorFlow's own `MonitoredSession` drives the hooks, over a live session instead of
a session on a graph. So TensorFlow's code decides which methods run after which
failure, how fetches, feeds and options of several hooks are merged, and what happens
after an `AbortedError`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf
from absl import logging

from hookbridge import compat
from hookbridge.adapters.fit_loop import hosting, likely, refusals
from hookbridge.adapters.fit_loop.modes import PREDICT, TRAIN, Mode
from hookbridge.adapters.fit_loop.monitored import (
    Creator,
    HookWithoutEnd,
    not_the_end_of_data,
    scaffold_of,
)
from hookbridge.adapters.fit_loop.states import FitStates
from hookbridge.adapters.fit_loop.step import KeptFunction, StepFunction
from hookbridge.adapters.fit_loop.step_feeds import NO_FEEDS, StepFeeds
from hookbridge.adapters.guests.kinds import name_of
from hookbridge.adapters.live_session import variables as live_variables
from hookbridge.adapters.live_session.global_step import GlobalStep
from hookbridge.adapters.live_session.graph import LiveGraph
from hookbridge.adapters.live_session.program import SessionProgram
from hookbridge.adapters.live_session.session import LiveSession

v1 = tf.compat.v1

_IN_END = (
    "hookbridge: `end` of %s fetched %s and got the values of the last step: `fit` has "
    "no further batch, on which a session would compute them anew."
)


class FitRun:
    """The state of one run; nothing of it outlives the run.

    Args:
      model: the Keras model whose loop is the host.

    Attributes:
      hooks: the hooks, in the order of the callback list.
      global_step: the count of steps, from the first step on.
      hosting: the run's place in the model's loop.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self.hooks: list[Any] = []
        self.global_step: GlobalStep | None = None
        self.hosting = hosting.Hosting(model, self)
        self._monitored: Any = None
        self._graph: LiveGraph | None = None
        self._session: LiveSession | None = None
        self._last_values: dict[str, Any] = {}
        self._eager_mode = compat.private("eager_mode")
        self._args: tuple[Any, ...] = ()
        self._outputs: Any = None
        self._keras_graph: Any = None
        self._ended = 0
        self._has_outputs = False
        self._data_ended = False
        self._is_stopped = False

    @classmethod
    def join(cls, model: Any, *hooks: Any) -> Any:
        """The run that waits for the model's next loop, with hooks added to it."""
        run = hosting.pending(model) or cls(model)
        run.hooks += [hook for hook in hooks if hook is not None]
        return run

    @property
    def is_over(self) -> bool:
        """Whether the run has ended, cleanly or not."""
        return self.hosting.is_over

    @property
    def waits(self) -> bool:
        """Whether the run goes on and its hooks have had no event yet."""
        return self._graph is None and not self.is_over

    @property
    def is_aside(self) -> bool:
        """Whether a loop inside this one has the model."""
        return self.hosting.is_aside

    def is_mode(self, name: str) -> bool:
        """Whether `name` is the run's loop: "train", "test" or "predict"."""
        return self.hosting.mode is not None and self.hosting.mode.name == name

    def make_step(self, mode: Mode, make: Callable[..., Any]) -> Any:
        """See `Hosted`."""
        earlier = getattr(self._model, mode.function)
        if isinstance(earlier, KeptFunction):
            return earlier.step
        names = likely.tensor_names(self.hooks)
        if mode is not PREDICT and any(map(likely.may_fetch_loss, self.hooks)):
            names |= {"loss:0"}
        return StepFunction(self._model, mode, make, names)

    def call(self, *args: Any) -> Any:
        """What Keras calls for every step."""
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
                self._monitored.run(self._graph.loop_fetches)
                if self._monitored.should_stop():
                    self._stop()
        except (StopIteration, tf.errors.OutOfRangeError) as e:
            if self._data_ended:
                raise  # Keras ends the epoch
            # The exact type counts, as in a MonitoredSession.
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
        mode = self.hosting.mode
        assert mode is not None
        if mode is TRAIN or hasattr(self._model, mode.stop):
            setattr(self._model, mode.stop, True)
        self._is_stopped = mode is not TRAIN

    def _stopped_by(self, error: BaseException) -> Any:
        """Ends the loop, as a hook's error asked; Keras would end only the epoch."""
        self._stop()
        outputs, self._outputs = self._outputs, None
        if outputs is not None:
            return outputs  # `after_run` raised: the step has been made
        if not self._has_outputs and self.hosting.mode is not PREDICT:
            # Without logs, Keras 2 blames the input pipeline.
            return self._model.get_metrics_result()
        raise error

    def _start(self) -> None:
        """Traces the step, then `begin` and `after_create_session`."""
        self.hosting.step.discover(*self._args)
        model = self._model
        steps = getattr(model, "_steps_per_execution", None)
        if steps is None:
            steps = getattr(model, "steps_per_execution", 1)
        several = live_variables.as_int(1 if steps is None else steps) > 1
        # The count is read only where a call makes several steps.
        self._counts = several and self.hosting.mode is TRAIN
        self.global_step = GlobalStep(model)
        for hook in self.hooks:
            refusals.check_start(hook, self.global_step.value)
        optimizer = getattr(model, "optimizer", None)
        self._rate = live_variables.learning_rate_variable(optimizer)
        self._graph = LiveGraph(
            self.hosting.step.names,
            live_variables.model_variables(model),
            self.global_step.variable,
            self._rate,
        )
        scaffold = scaffold_of(self.hooks) or v1.train.Scaffold()
        try:
            with self._graph.as_default():
                self._monitored = v1.train.MonitoredSession(
                    session_creator=Creator(self._create_session, scaffold),
                    hooks=self._session_hooks(),
                )
        except (StopIteration, tf.errors.OutOfRangeError) as e:
            raise not_the_end_of_data(e) from e

    def _session_hooks(self) -> list[Any]:
        return [HookWithoutEnd(hook) for hook in self.hooks]

    def _create_session(self) -> LiveSession:
        assert self._graph is not None and self.global_step is not None
        self._session = LiveSession(
            self._graph,
            self.global_step,
            self._run_step,
            self._last_values,
            self.hosting.step.functions,
        )
        return self._session

    def _run_step(self, program: SessionProgram, feeds: Sequence[Any]) -> list[Any]:
        assert self._graph is not None and self.global_step is not None
        step, tapped = self.hosting.step, self._graph.tapped
        into_step = self._into_step(program) if program.feeds else NO_FEEDS
        # Hooks run under the live graph; Keras's function has to run under the graph
        # of `fit`, which holds the strategy's scope.
        with self._keras_graph.as_default(), self._eager_mode():
            before = step.steps_made if self._counts else 0
            try:
                fetched: list[Any]
                outputs, fetched, values = step.run(
                    self._args, program, feeds, tapped, into_step
                )
            except (StopIteration, tf.errors.OutOfRangeError):
                self._data_ended = True
                raise
            self.global_step.add(self._steps_of_a_call(before))
        self._last_values.update(values)
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
        """How many training steps the last call made."""
        if self.hosting.mode is not TRAIN:
            return 0
        return self.hosting.step.steps_made - before if self._counts else 1

    def end(self, hook: Any) -> None:
        """The `end` of one hook, after a clean finish."""
        if self._graph is None or self.is_over:
            return
        assert self._session is not None
        self._session.read_last.clear()
        try:
            with self._graph.as_default():
                hook.end(self._session)
        except BaseException:
            self.fail()
            raise
        if self._session.read_last:
            logging.warning(_IN_END, name_of(hook), sorted(self._session.read_last))
        self._ended += 1
        if self._ended == len(self.hooks):
            self._close()

    def _close(self) -> None:
        assert self._graph is not None and self.global_step is not None
        self.global_step.remember()
        try:
            with self._graph.as_default():
                self._monitored.close()
        finally:
            self.hosting.leave()

    def fail(self) -> None:
        """Closes the session after an exception, without any `end`."""
        try:
            if self._monitored is not None and self._graph is not None:
                with self._graph.as_default():
                    self._monitored.__exit__(*sys.exc_info())
            elif self._session is not None:  # `after_create_session` failed
                self._session.close()
        finally:
            self.hosting.leave()

    def left(self) -> None:
        """See `Hosted`."""
        for hook in self.hooks:
            if isinstance(hook, FitStates):
                hook.leave()
        # An iterator that is left to the garbage collector can hold the process up
        # for a minute (docs/decisions/0005-iterators-die-young.md).
        self._args = ()
