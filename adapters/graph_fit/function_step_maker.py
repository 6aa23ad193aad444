"""The steps of a model in a v1 graph: each execution of Keras's function is one run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from hookbridge.adapters.graph_fit.functions import LoopFunction
from hookbridge.adapters.graph_fit.graph_names import learning_rate
from hookbridge.adapters.graph_fit.keras_graph import KerasGraphPart
from hookbridge.adapters.graph_fit.keras_session import KerasSession, KerasSessionPart
from hookbridge.adapters.graph_fit.step_call import StepCall
from hookbridge.adapters.hooked_loop.hooked_run import HookedRun
from hookbridge.adapters.hooked_loop.host import LoopHost, StepMaker
from hookbridge.ground import compat
from hookbridge.ground.patching import assign
from hookbridge.ground.protocols import AnyFunction, Arguments, KerasModel, Session


def graph_host(run: HookedRun) -> LoopHost:
    """Return the host of a run in Keras's loops of a v1 graph.

    Hooks get Keras's session.
    """
    graph = KerasGraphPart(run)
    session = KerasSessionPart(run, graph)
    return LoopHost(graph, session, FunctionStepMaker(run, graph, session))


class FunctionStepMaker(StepMaker):
    """Makes the steps of one `fit`, `evaluate` or `predict` in a v1 graph."""

    def __init__(
        self, run: HookedRun, graph: KerasGraphPart, session: KerasSessionPart
    ) -> None:
        self._run = run
        self._graph = graph
        self._session = session
        self._function: LoopFunction | None = None
        self._step_call: StepCall  # that of the present step
        self._last: list[Any] = []

    @property
    def data_ended(self) -> bool:
        return self._step_call.data_ended

    def begin(self, mode: str) -> None:
        if self._run.mode is None:
            self._run.note_begin(mode)
            self._function = LoopFunction(self._run.model, mode, self._session_of)
            self._function.install()

    def _session_of(self, function: Any, session: Session) -> KerasSession:
        """Return the session that makes the callable of Keras's function."""

        def make_step(options: object) -> AnyFunction:
            rate = learning_rate(self._run.model)
            step = StepCall(session, options, self._fetches_of(function), rate)

            def call(
                *values: object, run_metadata: tf.compat.v1.RunMetadata | None = None
            ) -> Any:
                return self._run.call(step, values, function.run_options, run_metadata)

            return call

        return self._session.handle_of(session, make_step)

    def _fetches_of(self, function: Any) -> Mapping[str, Any]:
        """Return what a session loop would fetch."""
        is_predict = self._run.mode == "predict"
        model = self._run.model
        names = model.output_names if is_predict else model.metrics_names
        return dict(zip(names, function.outputs, strict=False))

    def prepare(self, args: Arguments) -> None:
        self._step_call, values, options, metadata = args
        self._step_call.data_ended = False
        self._session.current.step_call = self._step_call
        if options is not None:  # hooks' options are merged into it
            copied = tf.compat.v1.RunOptions()
            copied.CopyFrom(options)
            options = copied
        self._request = (self._step_call.feed_dict(values), options, metadata)

    def open(self) -> int:
        fetches = self._step_call.fetches
        return self._graph.build(self._session.current, self._run.mode, fetches)

    def run(self, monitored: tf.compat.v1.train.MonitoredSession) -> Any:
        self._last = monitored.run(self._step_call.fetches, *self._request)
        return self._last

    def stop(self) -> None:
        assign(self._run.model, stop_training=True)
        _end_with_this_batch()

    def stopped_by(self, error: BaseException) -> Any:
        outputs = self._step_call.take_outputs()
        if outputs is not None:
            return outputs  # the step was made: `after_run` raised
        if self._run.mode == "predict":
            raise error
        # Keras cannot leave its loop before a step without outputs of that step.
        return self._last or [0.0] * len(self._run.model.metrics_names)

    def means_of(self, model: KerasModel) -> None:
        """Keep no means: the loop of a v1 graph has them in its local variables."""

    def suspend(self) -> None:
        if self._function is not None:
            self._function.remove()

    def resume(self) -> None:
        if self._function is not None:
            self._function.install()

    def leave(self) -> None:
        if not self._run.is_suspended:
            self.suspend()


def _end_with_this_batch() -> None:
    """Let the running loop average over the batches that have run."""
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
