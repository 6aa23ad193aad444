"""Reads and writes variables without adding ops to the graph."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from absl import logging

from hookbridge import errors
from hookbridge.adapters.session_graph import ops as graph_ops
from hookbridge.ground.cluster import task_of

_writes: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()


def writes(session: Any) -> int:
    """How many times `write` has set variables of a session."""
    return _writes.get(session, 0)


def read(session: Any, variables: Sequence[Any]) -> list[Any]:
    """Values of several variables in one run, as numpy arrays."""
    return list(session.run(list(variables))) if variables else []


def write(session: Any, pairs: Iterable[tuple[Any, Any]]) -> None:
    """Assigns values to variables of a graph that may be finalized.

    As `Variable.load` does, by the initializers with fed inputs. A worker leaves those
    of a parameter server to the chief: N workers would reduce a learning rate N times.
    """
    rounds: list[tuple[list[Any], dict[Any, Any]]] = []
    shared_elsewhere = task_of() == "worker"
    for variable, value in pairs:
        if shared_elsewhere and "/job:ps" in (variable.device or ""):
            _say_left_alone(variable.op.name)
            continue
        initializer = variable.initializer
        source = initializer.inputs[1]
        array = np.asarray(value, variable.dtype.base_dtype.as_numpy_dtype)
        if not variable.shape.is_compatible_with(array.shape):
            raise errors.InvalidArgumentError(
                f"The value for the variable `{variable.name}` has the shape "
                f"{array.shape}; expected {tuple(variable.shape)}."
            )
        # Two variables may share one initial value; they need a run each.
        for ops, feeds in rounds:
            if source.name not in feeds:
                ops.append(initializer)
                feeds[source.name] = array
                break
        else:
            rounds.append(([initializer], {source.name: array}))
    for ops, feeds in rounds:
        session.run(ops, feeds)
    if rounds:
        _writes[session] = writes(session) + 1


@functools.cache
def _say_left_alone(name: str) -> None:
    logging.info(
        "hookbridge: `%s` is on a parameter server: the chief alone sets it, this "
        "worker's callbacks do not.",
        name,
    )


def model_variables(graph: Any) -> tuple[list[Any], list[Any]]:
    """The variables that are a model's weights: `(trainable, not trainable)`."""
    # Trainable ones in graph order; the others are those in the collection
    # `MODEL_VARIABLES` and those that `UPDATE_OPS` write, such as the moving averages
    # of batch normalization.
    keys = tf.compat.v1.GraphKeys
    trainable = unique(graph.get_collection(keys.TRAINABLE_VARIABLES))
    named = graph.get_collection(keys.MODEL_VARIABLES)
    written = graph_ops.ancestors(
        getattr(u, "op", u)
        for u in graph.get_collection(keys.UPDATE_OPS)
        if hasattr(getattr(u, "op", u), "inputs")
    )
    targets = {op.inputs[0].op for op in written if op.type.startswith("Assign")}
    others = [
        v
        for v in unique([*named, *graph.get_collection(keys.GLOBAL_VARIABLES)])
        if id(v) not in map(id, trainable)
        and (id(v) in map(id, named) or graph_ops.handle_op(v) in targets)
    ]
    return trainable, others


def saved_variables(graph: Any) -> list[Any]:
    """The variables that a checkpoint of the session holds, global step included."""
    return unique(graph.get_collection(tf.compat.v1.GraphKeys.GLOBAL_VARIABLES))


def all_variables(graph: Any) -> list[Any]:
    """The global and the local variables."""
    keys = tf.compat.v1.GraphKeys
    return [
        *graph.get_collection(keys.GLOBAL_VARIABLES),
        *graph.get_collection(keys.LOCAL_VARIABLES),
    ]


def unique(variables: Iterable[Any]) -> list[Any]:
    """The variables without repetition, in order."""
    # `==` on variables builds an op.
    return list({id(variable): variable for variable in variables}.values())
