"""Where the entries of a callback's `logs` come from in an evaluation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from hookbridge import errors
from hookbridge.adapters.session_graph import estimator_stack, graph_ops, log_sources
from hookbridge.adapters.session_graph.log_sources import LogSource
from hookbridge.ground import collected
from hookbridge.ground.protocols import Graph

_METRICS = tf.compat.v1.GraphKeys.METRIC_VARIABLES


def find(logs: Mapping[str, Any], graph: Graph) -> list[LogSource]:
    """Return an evaluation graph's streaming metrics, the loss first.

    Args:
      logs: the user's `{key of logs: tensor or its name}`; entries that only the
        training graph has are left out.
      graph: the evaluation graph.
    """
    sources: dict[str, LogSource] = {}
    for key, spec in logs.items():
        try:
            source = log_sources.resolve(key, spec, graph)
        except (errors.UnknownTensorError, errors.InvalidArgumentError):
            continue
        if source.tensor.graph is graph:
            sources[key] = source
    declared = estimator_stack.evaluation(graph)
    metrics = _declared_metrics(declared, graph) if declared else _named_metrics(graph)
    for metric in metrics:
        sources.setdefault(metric.key, metric)
    if "loss" not in sources:
        # The user's own session over an evaluation graph: found as in training.
        loss = log_sources.find_loss(graph)
        if loss is not None:
            sources["loss"] = log_sources.resolve("loss", loss, graph)
    if "loss" in sources:
        sources = {"loss": sources.pop("loss"), **sources}
    return list(sources.values())


def _named_metrics(graph: Graph) -> list[LogSource]:
    """Return the `tf.compat.v1.metrics` of a graph, by their scopes."""
    variables = collected.variables(graph, _METRICS)
    scopes = dict.fromkeys(v.op.name.rpartition("/")[0] for v in variables)
    metrics = (log_sources.find_metric(scope, graph) for scope in scopes)
    return [metric for metric in metrics if metric is not None]


def _declared_metrics(
    evaluation: estimator_stack.EvalMetrics, graph: Graph
) -> list[LogSource]:
    """Return the metrics that `Estimator.evaluate` returns, as they were built."""
    # An Estimator sorts the names, but the variables are in the user's order.
    positions = {op: i for i, op in enumerate(graph.get_operations())}
    variables = {collected.handle_op(v) for v in collected.variables(graph, _METRICS)}
    ordered = []
    for name, value in evaluation.values.items():
        reached = graph_ops.ancestors([value.op])
        first = min(positions[op] for op in (reached & variables) or [value.op])
        scope, _, leaf = value.op.name.rpartition("/")
        metric = log_sources.find_metric(scope, graph) if leaf == "value" else None
        if metric is not None and metric.value is value:
            source = metric._replace(key=name)
        elif any(op.type == "NextIteration" for op in reached):
            source = LogSource(name, value, True, (), value)  # a loop cannot be copied
        else:
            source = log_sources.streaming_source(name, value, evaluation.update, graph)
        ordered.append((first, source))
    return [source for _, source in sorted(ordered, key=lambda item: item[0])]
