"""`fit`, `evaluate` and `predict` of a Keras model as the host of hooks."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from absl import logging

from hookbridge.adapters.fit_loop.installation import Installation
from hookbridge.adapters.fit_loop.step_function import KeptFunction, StepFunction
from hookbridge.adapters.fit_loop.tapped_function import NO_FEEDS, StepFeeds
from hookbridge.adapters.guests.kinds import name_of
from hookbridge.adapters.hooked_loop.host import Host, ModelValues
from hookbridge.adapters.hooked_loop.modes import PREDICT, TRAIN, Mode
from hookbridge.adapters.hooked_loop.monitored import END_OF_DATA, scaffold_of
from hookbridge.adapters.live_session import variables as live_variables
from hookbridge.adapters.live_session.global_step import GlobalStep
from hookbridge.adapters.live_session.graph import LiveGraph
from hookbridge.adapters.live_session.program import SessionProgram
from hookbridge.adapters.live_session.session import LiveSession
from hookbridge.ground import compat

v1 = tf.compat.v1

_IN_END = (
    "hookbridge: `end` of %s fetched %s and got the values of the last step: the loop "
    "has no further batch, on which a session would compute them anew."
)


class FitHost(Host):
    """One `fit`, `evaluate` or `predict` in one process, or a user's own loop."""

    def __init__(
        self, model: Any, installation: Callable[..., Any] = Installation
    ) -> None:
        super().__init__(model)
        self._make_installation = installation
        self.installation: Any = None
        self._args: tuple[Any, ...] = ()
        self._outputs: Any = None
        self._has_outputs = False
        self._is_stopped = False
        # Whether a call makes several steps; the step's own count is read only then.
        self._counts = False
        self._eager_mode = compat.private("eager_mode")
        # The graph of the native loop, which holds the strategy's scope. The native
        # step runs under it, in `_eager_mode()`.
        self._outside: Any = None
        self._rate: Any = None
        self._graph: LiveGraph
        self._global_step: Any = None  # a `GlobalStep`, from `open` on
        # `{placeholder: value}` of the last step, for runs without a step.
        self._last_values: dict[str, Any] = {}

    def attach(self, loop: Any) -> None:
        super().attach(loop)
        self.installation = self._make_installation(self.model, loop, self._make_step)

    @property
    def native_step(self) -> Any:  # type: ignore[override]
        return self.installation.step

    def _make_step(
        self, mode: Mode, make: Callable[..., Any], owner: Any = None
    ) -> Any:
        """The run's step; None to take no part in the loop."""
        earlier = getattr(self.model if owner is None else owner, mode.function)
        if isinstance(earlier, KeptFunction):
            return earlier.step
        guests = self.loop.guests
        names = {name for guest in guests for name in guest.fetched_names}
        if mode is not PREDICT and any(guest.may_fetch_loss for guest in guests):
            names.add("loss:0")
        return StepFunction(self.model, mode, make, frozenset(names), owner)

    def open(self) -> int:
        model = self.model
        self.installation.step.discover(*self._args)
        steps = getattr(model, "_steps_per_execution", None)
        if steps is None:
            steps = getattr(model, "steps_per_execution", 1)
        several = live_variables.as_int(1 if steps is None else steps) > 1
        self._counts = several and self.installation.mode is TRAIN
        self._global_step = GlobalStep(model)
        optimizer = getattr(model, "optimizer", None)
        self._rate = live_variables.learning_rate_variable(optimizer)
        self._graph = LiveGraph(
            self.installation.step.names,
            live_variables.model_variables(model),
            self._global_step.variable,
            self._rate,
        )
        return int(self._global_step.value)

    def prepare_session(self, is_first: bool) -> LiveSession:
        """See `Host`; the order is that of TensorFlow's `SessionManager`."""
        # Variables of the model keep their values; those that hooks made in `begin` are
        # initialised.
        if is_first:
            scaffold = scaffold_of(self.loop.hooks) or v1.train.Scaffold()
            self._scaffold = scaffold
            # Only the user's own ops. The ops that `finalize` makes have nothing to
            # report, since Keras has initialised the model.
            self._ready = (scaffold.ready_for_local_init_op, scaffold.ready_op)
        scaffold = self._scaffold
        with self._graph.finalizing(scaffold):
            scaffold.finalize()
        session = self.session = self._make_session()
        session.run(scaffold.init_op, feed_dict=scaffold.init_feed_dict)
        if is_first and scaffold.init_fn is not None:
            # A recovered session goes on with the model as it is.
            scaffold.init_fn(session)
        ready_for_local, ready = self._ready
        _check_ready(session, ready_for_local)
        session.run(
            scaffold.local_init_op,
            feed_dict=getattr(scaffold, "local_init_feed_dict", None),
        )
        _check_ready(session, ready)
        return session

    def _make_session(self) -> LiveSession:
        return LiveSession(
            self._graph,
            self._global_step,
            self._run_step,
            self._last_values,
            self.installation.step.functions,
        )

    def hooks_run(self) -> contextlib.AbstractContextManager[Any]:
        return self._graph.as_default()  # type: ignore[no-any-return]

    def prepare(self, args: tuple[Any, ...]) -> None:
        if self._is_stopped:
            # Keras 2 has no other way to end `evaluate` and `predict`.
            raise tf.errors.OutOfRangeError(None, None, "A hook asked for a stop.")
        self._outside = v1.get_default_graph()
        self._args = args

    def run(self, monitored: Any) -> Any:
        monitored.run(self._graph.loop_fetches)
        self._has_outputs = True
        return self._take_outputs()

    def _take_outputs(self) -> Any:
        outputs, self._outputs = self._outputs, None
        return outputs

    def _into_step(self, program: SessionProgram) -> StepFeeds:
        """Which feeds of a program go into the step."""
        if not program.feeds:
            return NO_FEEDS
        rate, tensors, graph = None, {}, self._graph
        for index, tensor in enumerate(program.feeds):
            if tensor.name == graph.learning_rate_name:
                rate = (self._rate, index)
            elif tensor.op.name in graph.step_tensors:
                tensors[graph.step_tensors[tensor.op.name].key] = index
        return StepFeeds(rate, tensors)

    def _run_step(self, program: SessionProgram, feeds: Sequence[Any]) -> list[Any]:
        step, into_step = self.installation.step, self._into_step(program)
        with self._outside.as_default(), self._eager_mode():
            before = step.steps_made if self._counts else 0
            try:
                fetched: list[Any]
                outputs, fetched, values = step.run(
                    self._args, program, feeds, self._graph.tapped, into_step
                )
            except END_OF_DATA:
                self.data_ended = True
                raise
            if self._counts:
                self._global_step.add(step.steps_made - before)
            elif self.installation.mode is TRAIN:
                self._global_step.add(1)
        self._last_values.update(values)
        self._outputs = outputs
        return fetched

    def stop(self) -> None:
        mode = self.installation.mode
        assert mode is not None
        if mode is TRAIN or hasattr(self.model, mode.stop):
            setattr(self.model, mode.stop, True)
        self._is_stopped = mode is not TRAIN

    def stopped_by(self, error: BaseException) -> Any:
        outputs = self._take_outputs()
        if outputs is not None:
            return outputs  # `after_run` raised: the step has been made
        return self.installation.without_step(error, is_first=not self._has_outputs)

    def end(self, hook: Any) -> None:
        """See `Host`; warns of values that a session would have computed anew."""
        read_last = self.session.read_last
        read_last.clear()
        super().end(hook)
        if read_last:
            logging.warning(_IN_END, name_of(hook), sorted(read_last))

    @property
    def step(self) -> int:
        return int(self._global_step.value)

    def values(self) -> ModelValues:
        variables = live_variables.model_variables(self.model)
        with self._eager_mode():
            # An eager variable shares its value until it gets another one: no copy. A
            # distributed one would enter its strategy, under any graph.
            return ModelValues(
                [
                    live_variables.components(each.eager)[0].read_value()
                    for each in variables
                    if not each.local
                ]
            )

    def remember(self) -> None:
        if self._global_step is not None:
            self._global_step.remember()

    def suspend(self) -> None:
        self.remember()
        self.installation.suspend()

    def resume(self) -> None:
        if self._global_step is not None:
            self._global_step.recall()
        self.installation.resume()

    def leave(self) -> None:
        self.installation.leave()
        # An iterator that is left to the garbage collector can hold the process up
        # for a minute (docs/decisions/0005-iterators-die-young.md).
        self._args = ()


def _check_ready(session: LiveSession, ready_op: Any) -> None:
    if ready_op is None:
        return
    value = session.run(ready_op)
    # As in `SessionManager`: no value (of an op), a number or no names mean ready.
    if value is None or value.dtype == np.int32 or not value.size:
        return
    names = ", ".join(tf.compat.as_text(name) for name in np.ravel(value))
    raise RuntimeError(
        f"Init operations did not make model ready. Variables not initialized: {names}"
    )
