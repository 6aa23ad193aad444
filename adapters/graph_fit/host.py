"""`fit`, `evaluate` and `predict` of a model in a v1 graph as the host of hooks.

Hooks get Keras's own session. Each execution of Keras's function is one run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from hookbridge import compat
from hookbridge.adapters.graph_fit import optimizer
from hookbridge.adapters.graph_fit.functions import LoopFunction
from hookbridge.adapters.graph_fit.session import KerasSession
from hookbridge.adapters.graph_fit.stage import GraphStage
from hookbridge.adapters.graph_fit.step import StepCall
from hookbridge.adapters.hooked_loop.host import Host
from hookbridge.patching import assign

v1 = tf.compat.v1


class GraphHost(Host):
    """One `fit`, `evaluate` or `predict` in a v1 graph."""

    def __init__(self, model: Any) -> None:
        self._graph = GraphStage(model)
        super().__init__(model, self._graph)
        self._function: LoopFunction | None = None
        self._step: StepCall
        self._request: tuple[Any, Any, Any]
        self._last: list[Any] = []

    def begin(self, mode: str) -> None:
        if self.mode is None:
            self.loop.note_begin(mode)
            self._function = LoopFunction(self.model, mode, self._session_of)
            self._function.install()

    def _session_of(self, function: Any, session: Any) -> KerasSession:
        """The session that makes the callable of Keras's function."""
        mine = self._graph.session_over(session)

        def make_step(options: Any) -> Callable[..., Any]:
            rate = optimizer.learning_rate(self.model)
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

    def prepare(self, args: tuple[Any, ...]) -> None:
        self._step, values, options, metadata = args
        self._step.data_ended = False
        self._graph.session.step = self._step
        if options is not None:  # hooks' options are merged into it
            copied = v1.RunOptions()
            copied.CopyFrom(options)
            options = copied
        self._request = (self._step.feed_dict(values), options, metadata)

    def open(self) -> int:
        assert self.mode is not None
        return self._graph.open(self.mode, self._step.fetches)

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

    def step_aside(self) -> None:
        if self._function is not None:
            self._function.remove()
        self._graph.step_aside()

    def come_back(self) -> None:
        if self._function is not None:
            self._function.install()
        self._graph.come_back()

    def leave(self) -> None:
        if not self.loop.is_aside:
            self.step_aside()
        self._graph.leave()


def _end_with_this_batch() -> None:
    """Lets the running loop average over the batches that have run.

    Keras would divide the loss by the number of samples or steps that it expected, and
    return an array with room for all predictions.
    """
    names = compat.running_locals("graph_fit_arrays", "graph_fit_generator")
    if names is None:
        return  # one step alone, as in `train_on_batch`
    aggregator: Any = names["aggregator"]
    if aggregator.use_steps:
        assign(aggregator, steps=names["step"] + 1, num_samples=None)
        return
    seen = names["batch_end"]
    assign(aggregator, num_samples=seen)
    for part in aggregator.results or ():
        if hasattr(part, "num_samples"):  # predictions of one output
            assign(part, num_samples=seen, results=part.results[:seen])
