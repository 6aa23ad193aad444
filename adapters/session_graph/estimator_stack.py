"""What an Estimator's `model_fn` returned, read while a hook's `begin` is called.

A hook sees only the graph. There the loss of an `EstimatorSpec` is one tensor among
others, the names of `eval_metric_ops` are in no op, and a saver that the `model_fn`
gave to its `Scaffold` is in no collection. The Estimator's functions that hold them are
still running when `begin` of a hook is called: their local variables are read here and
never changed.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from typing import Any, NamedTuple

import tensorflow as tf

from hookbridge import compat

_TRAINS = "_train_with_estimator_spec"


class Evaluation(NamedTuple):
    """The metrics of an evaluation, and the op that updates them.

    Attributes:
      values: `{name: tensor}` of `eval_metric_ops`, `"loss"` included.
      update: the op that updates all of them.
    """

    values: dict[str, Any]
    update: Any


def _frames() -> Iterator[Any]:
    return (frame for frame, _ in traceback.walk_stack(sys._getframe(1)))


def training_spec(graph: Any) -> Any:
    """The `EstimatorSpec` whose training session is being made, or None."""
    for frame in _frames():
        if frame.f_code.co_name == _TRAINS:
            spec = frame.f_locals.get("estimator_spec")
            if getattr(getattr(spec, "loss", None), "graph", None) is graph:
                return spec
    return None


def scaffold_saver(graph: Any) -> Any:
    """The saver that the `model_fn` gave to the `Scaffold` of its training, or None."""
    spec = training_spec(graph)
    return None if spec is None else getattr(spec.scaffold, "saver", None)


def collect_saver(graph: Any) -> None:
    """Puts the Scaffold's saver into `SAVERS`, where others look for it."""
    saver = scaffold_saver(graph)
    savers = graph.get_collection_ref(tf.compat.v1.GraphKeys.SAVERS)
    if saver is not None and not savers:
        savers.append(saver)


def evaluation(graph: Any) -> Evaluation | None:
    """The metrics of the evaluation whose session is being made, or None."""
    code = compat.private("evaluate_once").__code__
    for frame in _frames():
        if frame.f_code is not code:
            continue
        final, updates = (frame.f_locals.get(n) for n in ("final_ops", "eval_ops"))
        if not isinstance(final, dict) or not isinstance(updates, list):
            return None
        found = {
            name: value
            for name, value in final.items()
            if name != "global_step" and getattr(value, "graph", None) is graph
        }
        return Evaluation(found, updates[0]) if found else None
    return None


def checkpoint_dir() -> str | None:
    """The directory of the `MonitoredTrainingSession` that is being made, or None.

    Workers are given it too, though they write nothing there.
    """
    for frame in _frames():
        if frame.f_code.co_name == "MonitoredTrainingSession":
            found = frame.f_locals.get("checkpoint_dir")
            return None if found is None else str(found)
    return None
