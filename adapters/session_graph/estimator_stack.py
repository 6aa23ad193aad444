"""What an Estimator's `model_fn` returned, read while a hook's `begin` is called.

A graph does not tell which tensor is the loss of an `EstimatorSpec`, how
`eval_metric_ops` are named, and what saver a `Scaffold` was given. The Estimator's
functions that hold them are running then: their local variables are read here, never
changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import tensorflow as tf

from hookbridge.ground import compat
from hookbridge.ground.protocols import Graph
from hookbridge.ground.structures import COMPOSITES, dense_parts


class EvalMetrics(NamedTuple):
    """The metrics of an evaluation, and the op that updates them."""

    values: dict[str, Any]  # `{name: tensor}` of `eval_metric_ops`, `"loss"` included
    update: Any  # the op that updates all of them


def training_spec(graph: Graph) -> Any:
    """Return the `EstimatorSpec` whose training session is being made, or None."""
    names = compat.running_locals("estimator_train")
    spec = None if names is None else names["estimator_spec"]
    is_of_graph = getattr(getattr(spec, "loss", None), "graph", None) is graph
    return spec if is_of_graph else None


def scaffold_saver(graph: Graph) -> Any:
    """Return the saver that the `model_fn` gave to its `Scaffold`, or None."""
    spec = training_spec(graph)
    return None if spec is None else getattr(spec.scaffold, "saver", None)


def collect_saver(graph: Graph) -> None:
    """Put the Scaffold's saver into `SAVERS`, where others look for it."""
    saver = scaffold_saver(graph)
    savers = graph.get_collection_ref(tf.compat.v1.GraphKeys.SAVERS)
    if saver is not None and not savers:
        savers.append(saver)


def input_names() -> dict[str, str]:
    """Return `{tensor's name: name}` of features and labels of a new training."""
    data = compat.running_locals("estimator_data") or {}
    names: dict[str, str] = {}
    for part in ("features", "labels"):
        value = data.get(part)
        entries = value.items() if isinstance(value, Mapping) else [("", value)]
        for key, tensor in entries:
            name = f"{part}/{key}" if key else part
            if isinstance(tensor, COMPOSITES):
                names |= {dense.name: n for n, dense in dense_parts(name, tensor)}
            elif isinstance(tensor, tf.Tensor):
                names[tensor.name] = name
    return names


def evaluation(graph: Graph) -> EvalMetrics | None:
    """Return the metrics of the evaluation whose session is being made, or None."""
    names = compat.running_locals("evaluate_once")
    if names is None:
        return None
    final, updates = names["final_ops"], names["eval_ops"]
    if not isinstance(final, dict) or not isinstance(updates, list):
        return None
    metrics = {
        name: value
        for name, value in final.items()
        if name != "global_step" and getattr(value, "graph", None) is graph
    }
    return EvalMetrics(metrics, updates[0]) if metrics else None


def checkpoint_dir() -> str | None:
    """Return the directory of the `MonitoredTrainingSession` being made, or None."""
    # Workers are given it too, though they write nothing there.
    names = compat.running_locals("monitored_training_session") or {}
    directory = names.get("checkpoint_dir")
    return None if directory is None else str(directory)
