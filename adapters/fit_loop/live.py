"""The live graph and session of one run, over the variables of a Keras model."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
from absl import logging

from hookbridge import compat
from hookbridge.adapters.fit_loop.step_feeds import StepFeeds
from hookbridge.adapters.guests.kinds import name_of
from hookbridge.adapters.hooked_loop.host import Stage
from hookbridge.adapters.live_session import variables as live_variables
from hookbridge.adapters.live_session.global_step import GlobalStep
from hookbridge.adapters.live_session.graph import LiveGraph
from hookbridge.adapters.live_session.names import StepNames
from hookbridge.adapters.live_session.program import SessionProgram
from hookbridge.adapters.live_session.session import LiveSession

v1 = tf.compat.v1

_IN_END = (
    "hookbridge: `end` of %s fetched %s and got the values of the last step: the loop "
    "has no further batch, on which a session would compute them anew."
)


class Live(Stage):
    """What hooks see in a run whose model lives outside a graph."""

    def __init__(self, model: Any, make_session: Callable[[Live], LiveSession]) -> None:
        self._model = model
        self._make_session = make_session
        self.eager_mode = compat.private("eager_mode")
        # The graph of the native loop, which holds the strategy's scope. The native
        # step runs under it, in `eager_mode()`.
        self.outside: Any = None
        self._rate: Any = None
        self.graph: LiveGraph
        self.global_step: Any = None  # a `GlobalStep`, from `open` on
        # `{placeholder: value}` of the last step, for runs without a step.
        self.last_values: dict[str, Any] = {}

    def open(self, names: StepNames) -> int:
        """Makes the graph on which hooks begin; returns the global step."""
        model = self._model
        self.global_step = GlobalStep(model)
        optimizer = getattr(model, "optimizer", None)
        self._rate = live_variables.learning_rate_variable(optimizer)
        self.graph = LiveGraph(
            names,
            live_variables.model_variables(model),
            self.global_step.variable,
            self._rate,
        )
        return int(self.global_step.value)

    def create_session(self, scaffold: Any, is_first: bool) -> LiveSession:
        """See `Stage`; the order is that of TensorFlow's `SessionManager`.

        Variables of the model keep their values; those that hooks made in `begin` are
        initialised.
        """
        if is_first:
            self._scaffold = scaffold = scaffold or v1.train.Scaffold()
            # Only the user's own ops. The ops that `finalize` makes have nothing to
            # report, since Keras has initialised the model.
            self._ready = (scaffold.ready_for_local_init_op, scaffold.ready_op)
        scaffold = self._scaffold
        with self.graph.finalizing(scaffold):
            scaffold.finalize()
        session = self.session = self._make_session(self)
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

    def hooks_run(self) -> contextlib.AbstractContextManager[Any]:
        return self.graph.as_default()  # type: ignore[no-any-return]

    def into_step(self, program: SessionProgram) -> StepFeeds:
        """Which feeds of a program go into the step."""
        rate, tensors = None, {}
        for index, tensor in enumerate(program.feeds):
            if tensor.name == self.graph.learning_rate_name:
                rate = (self._rate, index)
            elif tensor.op.name in self.graph.step_tensors:
                tensors[self.graph.step_tensors[tensor.op.name].key] = index
        return StepFeeds(rate, tensors)

    def before_end(self) -> None:
        self.session.read_last.clear()

    def after_end(self, hook: Any) -> None:
        """See `Stage`: warns of values that a session would have computed anew."""
        if self.session.read_last:
            logging.warning(_IN_END, name_of(hook), sorted(self.session.read_last))

    def remember(self) -> None:
        if self.global_step is not None:
            self.global_step.remember()

    def recall(self) -> None:
        """Takes the global step that inner runs have left since `remember`."""
        if self.global_step is not None:
            self.global_step.recall()


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
