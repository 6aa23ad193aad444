"""`fit`, `evaluate` and `predict` of a model in a v1 graph as the host of hooks.

Hooks get Keras's own session. Each execution of Keras's function is one run.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from hookbridge.adapters.graph_fit.functions import LoopFunction
from hookbridge.adapters.graph_fit.graph_collections import GraphCollections, step_of
from hookbridge.adapters.graph_fit.graph_names import (
    GraphNames,
    gradients,
    learning_rate,
    rate_tensor,
)
from hookbridge.adapters.graph_fit.hook_variables import HookVariables
from hookbridge.adapters.graph_fit.keras_session import KerasSession
from hookbridge.adapters.graph_fit.step_call import StepCall
from hookbridge.adapters.hooked_loop.host import Host, ModelValues
from hookbridge.adapters.hooked_loop.monitored import scaffold_of
from hookbridge.adapters.live_session import variables as live_variables
from hookbridge.ground import compat
from hookbridge.ground.patching import assign

v1 = tf.compat.v1


class GraphHost(Host):
    """One `fit`, `evaluate` or `predict` in a v1 graph."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self._function: LoopFunction | None = None
        self._step: StepCall
        self._request: tuple[Any, Any, Any]
        self._last: list[Any] = []
        # What the run puts on the graph, and the names that hooks find there.
        self._is_begun = False
        self._collections: GraphCollections | None = None
        self._variables: HookVariables
        self._names: GraphNames

    def begin(self, mode: str) -> None:
        if self.mode is None:
            self.loop.note_begin(mode)
            self._function = LoopFunction(self.model, mode, self._session_of)
            self._function.install()

    def _session_of(self, function: Any, session: Any) -> KerasSession:
        """The session that makes the callable of Keras's function."""
        mine: KerasSession | None = self.session
        if mine is None or mine.native is not session:  # Keras may have a new one
            mine = self.session = KerasSession(session)

        def make_step(options: Any) -> Callable[..., Any]:
            rate = learning_rate(self.model)
            step = StepCall(session, options, self._fetches_of(function), rate)

            def call(*values: Any, run_metadata: Any = None) -> Any:
                return self.loop.call(step, values, function.run_options, run_metadata)

            return call

        mine.make_step = make_step
        return mine

    def _fetches_of(self, function: Any) -> Any:
        """What a session loop would fetch."""
        model = self.model
        names = model.output_names if self.mode == "predict" else model.metrics_names
        return dict(zip(names, function.outputs, strict=False))

    def open(self) -> int:
        session, graph, model = self.session, self.session.graph, self.model
        with graph.as_default():
            self._collections = GraphCollections(graph)
            self._variables = HookVariables(graph)
            counter = self._counter = step_of(model, session)
            if not session.run(v1.is_variable_initialized(counter)):
                session.run(counter.initializer)
            self._collections.enter(counter)
            aliases = {"global_step": v1.convert_to_tensor(counter)}
            rate = rate_tensor(model, counter)
        if rate is not None:
            aliases["learning_rate"] = rate
        if self.mode == "train":
            aliases.update(gradients(model))
        if self.mode != "predict":
            aliases.update(self._step.fetches)
        self._names = GraphNames(model, graph, aliases)
        return int(session.run(counter))

    def prepare_session(self, is_first: bool) -> KerasSession:
        """See `Host`."""
        # Variables of the model keep their values; those that hooks made in `begin` get
        # their initial values.
        session: KerasSession = self.session
        if is_first:
            assert self._collections is not None
            self._variables.initialise(session)
            self._collections.add_saver(self._counter)
            scaffold = scaffold_of(self.loop.hooks)
            if scaffold is not None:
                _run_scaffold(session, scaffold)
            session.graph.finalize()
        return session

    @contextlib.contextmanager
    def hooks_run(self) -> Iterator[None]:
        """See `Host`: the graph is final for hooks, after the first time."""
        graph = self.session.graph
        was_final = graph.finalized
        with (
            graph.as_default(),
            self._names.installed(),
            contextlib.ExitStack() as at_start,
        ):
            if self._is_begun:
                graph.finalize()
            else:
                at_start.enter_context(self._variables.recording())
            try:
                yield
            finally:
                self._is_begun = True
                if not was_final:  # Keras adds to it between steps
                    graph._unsafe_unfinalize()

    def prepare(self, args: tuple[Any, ...]) -> None:
        self._step, values, options, metadata = args
        self._step.data_ended = False
        self.session.step = self._step
        if options is not None:  # hooks' options are merged into it
            copied = v1.RunOptions()
            copied.CopyFrom(options)
            options = copied
        self._request = (self._step.feed_dict(values), options, metadata)

    def run(self, monitored: Any) -> Any:
        try:
            self._last = monitored.run(self._step.fetches, *self._request)
        finally:
            self.data_ended = self._step.data_ended
        return self._last

    def stop(self) -> None:
        assign(self.model, stop_training=True)
        _end_with_this_batch()

    def stopped_by(self, error: BaseException) -> Any:
        outputs = self._step.take_outputs()
        if outputs is not None:
            return outputs  # the step was made: `after_run` raised
        if self.mode == "predict":
            raise error
        # Keras cannot leave its loop before a step without outputs of that step.
        return self._last or [0.0] * len(self.model.metrics_names)

    @property
    def step(self) -> int:
        return int(self.session.run(self._counter))

    def values(self) -> ModelValues:
        variables = live_variables.model_variables(self.model)
        own = [each.eager for each in variables if not each.local]
        return ModelValues(self.session.run(own))

    def suspend(self) -> None:
        if self._function is not None:
            self._function.remove()
        if self._collections is not None:
            self._collections.leave()

    def resume(self) -> None:
        if self._function is not None:
            self._function.install()
        if self._collections is not None:
            self._collections.enter_again()

    def leave(self) -> None:
        if not self.loop.is_suspended:
            self.suspend()
        if self._collections is not None:
            self._variables.leave()


def _end_with_this_batch() -> None:
    """Lets the running loop average over the batches that have run."""
    # Keras would divide the loss by the number of samples or steps that it expected,
    # and return an array with room for all predictions.
    names = compat.running_locals("graph_fit_arrays", "graph_fit_generator")
    if names is None:
        return  # one step alone, as in `train_on_batch`
    aggregator: Any = names["aggregator"]
    if aggregator.use_steps:
        assign(aggregator, steps=names["step"] + 1, num_samples=None)
        return
    samples = names["batch_end"]
    assign(aggregator, num_samples=samples)
    for part in aggregator.results or ():
        if hasattr(part, "num_samples"):  # predictions of one output
            assign(part, num_samples=samples, results=part.results[:samples])


def _run_scaffold(session: Any, scaffold: Any) -> None:
    """Finalizes the scaffold of hooks and runs the user's own ops in it."""
    # The ops that `finalize` makes initialise everything: they would reset the model.
    own = (scaffold.init_op, scaffold.local_init_op)
    scaffold.finalize()
    if own[0] is not None:
        session.run(own[0], scaffold.init_feed_dict)
    if scaffold.init_fn is not None:
        scaffold.init_fn(session)
    if own[1] is not None:
        session.run(own[1])
