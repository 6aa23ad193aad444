"""Callbacks in evaluation and prediction sessions."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import Any, Literal

import tensorflow as tf

from hookbridge.adapters.session_graph import (
    eval_log_sources,
    graph_ops,
    learning_rate,
)
from hookbridge.adapters.session_graph.data_pulls import DataPulls, fed_placeholders
from hookbridge.adapters.session_graph.steps import StepFinder
from hookbridge.adapters.session_loop.shared import values
from hookbridge.adapters.session_loop.shared.callback_run import CallbackRun
from hookbridge.adapters.session_loop.shared.epoch_logs import EpochLogs
from hookbridge.adapters.session_loop.shared.options import HookOptions
from hookbridge.ground.protocols import Coordinator, Graph, RunContext
from hookbridge.ground.structures import RecentlyUsed


class _BatchRun(CallbackRun):
    """A run that trains nothing: its batches, numbered from 0, in one of two modes."""

    borrows = True
    mode: Literal["test", "predict"]

    def __init__(self, config: HookOptions, graph: Graph, counter: object) -> None:
        super().__init__(config, graph)
        self._counter = counter
        self._batch = 0
        self._is_in_batch = False

    def start_or_resume(self, coord: Coordinator) -> None:
        """Read the global step; deliver the event of the beginning, if not done yet."""
        if self._counter is not None:
            self.step = int(self.session.run(self._counter))
        if not self.started:
            with self.starting():
                self.deliver(f"on_{self.mode}_begin", {})

    def after_session_run(self, run_context: RunContext) -> None:
        if not self._is_in_batch:
            return
        self._is_in_batch = False
        self.model.live_link.counters.count(self.mode)
        self.deliver(f"on_{self.mode}_batch_end", self._batch, self._logs_of_batch())
        self._batch += 1

    @abc.abstractmethod
    def _logs_of_batch(self) -> Mapping[str, Any]:
        """Return the logs of the batch that has ended."""


class EvaluationRun(_BatchRun):
    """A run on an evaluation graph: every eval step is a test batch."""

    mode = "test"

    def __init__(
        self, config: HookOptions, graph: Graph, counter: object, steps: StepFinder
    ) -> None:
        super().__init__(config, graph, counter)
        self._steps = steps
        self._sources = eval_log_sources.find(config.logs, graph)
        self.make_model(
            [s.key for s in self._sources], learning_rate.find(graph, None), None
        )
        # Entries whose mean over the batches is computed here, not in the graph.
        self._plain = [s for s in self._sources if not s.streaming]
        self._logs = EpochLogs(self._sources)
        self._pulls = DataPulls(self._sources, steps.movers, idle_steps=True)
        self._requests = RecentlyUsed()  # of `(SessionRunArgs | None,)`

    def before_session_run(self, run_context: RunContext) -> Any:
        self.session = run_context.session
        self.push_assigned()
        step = self._steps.kind_of(run_context.original_args.fetches).step
        self._is_in_batch = step is not None
        if step is None:
            return None
        self.deliver("on_test_batch_begin", self._batch, {})
        request: tuple[Any] | None = self._requests.get(step)
        if request is None:
            wanted = (
                self._sources
                if self.audience.calls["on_test_batch_end"]
                else self._plain
            )
            fed = fed_placeholders(self.graph, run_context.original_args.feed_dict)
            tensors = {
                s.key: s.tensor
                for s in wanted
                if self._pulls.fetched_with(s, step, fed)
            }
            request = (tf.compat.v1.train.SessionRunArgs(tensors) if tensors else None,)
            self._requests.add(step, request)
        return request[0]

    def after_session_run(self, run_context: RunContext) -> None:
        ends_batch = self._is_in_batch
        super().after_session_run(run_context)
        if ends_batch:
            self._pass_stop_on()

    def _logs_of_batch(self) -> Mapping[str, Any]:
        return self._logs.update(self.results)

    def _pass_stop_on(self) -> None:
        if self.model.stop_training:
            # `evaluate` of Keras goes on; a `fit` around it reads the flag.
            self.model.stop_training = False
            self.asked_to_stop = True
            self.borrowed.stop_lenders()

    def reset_metrics(self) -> None:
        self._logs.reset(self.session)

    def finish(self) -> None:
        streaming = {s.key: s.value for s in self._sources if s.streaming}
        final = {**self._logs.current, **self.session.run(streaming)}
        # Without data an entry has no value, unless it is a metric with its own mean.
        logs = {
            s.key: values.as_log_value(final[s.key])
            for s in self._sources
            if s.key in final
        }
        self.deliver("on_test_end", logs)
        self._pass_stop_on()


class PredictionRun(_BatchRun):
    """A run on a graph that neither trains nor evaluates.

    Every run of the session that returns something is a batch.
    """

    mode = "predict"

    def __init__(self, config: HookOptions, graph: Graph, counter: object) -> None:
        super().__init__(config, graph, counter)
        self.make_model([], [], None)

    def before_session_run(self, run_context: RunContext) -> Any:
        self.session = run_context.session
        self.push_assigned()
        fetches = run_context.original_args.fetches
        self._is_in_batch = _has_tensor(fetches)
        if not self._is_in_batch:
            return None
        self.deliver("on_predict_batch_begin", self._batch, {})
        if not self.audience.calls["on_predict_batch_end"]:
            return None
        # The same fetches again: the session computes them once.
        return tf.compat.v1.train.SessionRunArgs(fetches)

    def _logs_of_batch(self) -> Mapping[str, Any]:
        return {"outputs": self.results}

    def finish(self) -> None:
        self.deliver("on_predict_end", {})


def _has_tensor(fetches: object) -> bool:
    return any(
        ":" in leaf if isinstance(leaf, str) else not isinstance(leaf, tf.Operation)
        for leaf in graph_ops.leaves(fetches)
    )
