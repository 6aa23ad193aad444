"""Reads and writes variables without adding ops to the graph."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from absl import logging

from hookbridge import errors
from hookbridge.adapters.session_graph import graph_ops
from hookbridge.ground import collected
from hookbridge.ground.memory import Fact
from hookbridge.ground.processes.tf_config import task_of
from hookbridge.ground.protocols import Graph, Session, Variable


class _HeldBack:
    """What `write` has set in a session and no checkpoint of it is to have."""

    def __init__(self) -> None:
        self.is_on = False
        # By id: variables that have been set, and their values before that.
        self.before: dict[int, tuple[Any, Any]] = {}

    def note(self, session: Session, variables: Sequence[Any]) -> None:
        """Keep the values of variables that are about to be set."""
        if not self.is_on:
            for variable in variables:  # what is set now is for checkpoints too
                self.before.pop(id(variable), None)
            return
        new = [variable for variable in variables if id(variable) not in self.before]
        for variable, value in zip(new, read(session, new), strict=True):
            self.before[id(variable)] = (variable, value)


_WRITES = Fact[int]("session", "number of writes of variables")
_HELD_BACK = Fact[_HeldBack]("session", "what no checkpoint is to have")


@contextlib.contextmanager
def held_back(session: Session) -> Iterator[None]:
    """Let `write` set what no checkpoint is to have, in a context."""
    holder = _HELD_BACK.get_or_put(session, _HeldBack)
    holder.is_on = True
    try:
        yield
    finally:
        holder.is_on = False


@contextlib.contextmanager
def undone(session: Session) -> Iterator[None]:
    """Return a context after which what `write` has set in it is as it was before."""
    holder = _HELD_BACK.get_or_put(session, _HeldBack)
    with held_back(session):
        yield
    _assign(session, holder.before.values())
    holder.before.clear()


@contextlib.contextmanager
def as_saved(session: Session) -> Iterator[None]:
    """Give variables the values that checkpoints are to have, in a context."""
    holder = _HELD_BACK.get(session)
    pairs = [] if holder is None else list(holder.before.values())
    now = read(session, [variable for variable, _ in pairs])
    _assign(session, pairs)
    try:
        yield
    finally:
        present = [(v, value) for (v, _), value in zip(pairs, now, strict=True)]
        _assign(session, present)


def writes(session: Session) -> int:
    """Return how often `write` has set what checkpoints are to have."""
    return _WRITES.get(session) or 0


def read(session: Session, variables: Sequence[Any]) -> list[Any]:
    """Return values of several variables in one run, as numpy arrays.

    Args:
      session: a session of their graph.
      variables: the variables, or tensors; an empty list needs no run.
    """
    return list(session.run(list(variables))) if variables else []


def write(session: Session, pairs: Iterable[tuple[Any, Any]]) -> None:
    """Assign values to variables of a graph that may be finalized.

    As `Variable.load` does, by the initializers with fed inputs. A worker leaves those
    of a parameter server to the chief: N workers would reduce a learning rate N times.

    Args:
      session: a session of their graph.
      pairs: `(variable, value)`, each value an array of the variable's shape.
    """
    to_write = [pair for pair in pairs if not _is_left_alone(pair[0])]
    holder = _HELD_BACK.get(session)
    if holder is not None:
        holder.note(session, [variable for variable, _ in to_write])
    _assign(session, to_write)
    if to_write and not (holder is not None and holder.is_on):
        _WRITES.put(session, writes(session) + 1)


def _is_left_alone(variable: Variable) -> bool:
    """Return whether this process is a worker and the variable is on a server."""
    is_elsewhere = task_of() == "worker" and "/job:ps" in (variable.device or "")
    if is_elsewhere:
        _say_left_alone(variable.op.name)
    return is_elsewhere


def _assign(session: Session, pairs: Iterable[tuple[Any, Any]]) -> None:
    """Run initializers with other initial values, which adds no op to the graph."""
    rounds: list[tuple[list[Any], dict[Any, Any]]] = []
    for variable, value in pairs:
        initializer = variable.initializer
        source = initializer.inputs[1]
        array = np.asarray(value, variable.dtype.base_dtype.as_numpy_dtype)
        if not variable.shape.is_compatible_with(array.shape):
            raise errors.InvalidArgumentError(
                f"The value for the variable `{variable.name}` has the shape "
                f"{array.shape}; expected {tuple(variable.shape)}."
            )
        # Two variables may share one initial value; they need a run each.
        earlier = (run for run in rounds if source.name not in run[1])
        ops, feeds = next(earlier, ([], {}))
        if not ops:
            rounds.append((ops, feeds))
        ops.append(initializer)
        feeds[source.name] = array
    for ops, feeds in rounds:
        session.run(ops, feeds)


@functools.cache
def _say_left_alone(name: str) -> None:
    logging.info(
        "hookbridge: `%s` is on a parameter server. Only callbacks of the chief set "
        "it; those of this worker do not.",
        name,
    )


def model_variables(graph: Graph) -> tuple[list[Any], list[Any]]:
    """Return the variables that are a model's weights: `(trainable, not trainable)`."""
    # Trainable ones in graph order; the others are those in the collection
    # `MODEL_VARIABLES` and those that `UPDATE_OPS` write, such as the moving averages
    # of batch normalization.
    keys = tf.compat.v1.GraphKeys
    trainable = collected.variables(graph, keys.TRAINABLE_VARIABLES)
    named = collected.variables(graph, keys.MODEL_VARIABLES)
    written = graph_ops.ancestors(collected.operations(graph, keys.UPDATE_OPS))
    targets = {op.inputs[0].op for op in written if op.type.startswith("Assign")}
    not_trainable = [
        v
        for v in unique([*named, *saved_variables(graph)])
        if id(v) not in map(id, trainable)
        and (id(v) in map(id, named) or collected.handle_op(v) in targets)
    ]
    return trainable, not_trainable


def saved_variables(graph: Graph) -> list[Any]:
    """Return the variables that a checkpoint holds, global step included."""
    return collected.variables(graph, tf.compat.v1.GraphKeys.GLOBAL_VARIABLES)


def all_variables(graph: Graph) -> list[Any]:
    """Return the global and the local variables."""
    keys = tf.compat.v1.GraphKeys
    return collected.variables(graph, keys.GLOBAL_VARIABLES, keys.LOCAL_VARIABLES)


def unique(variables: Iterable[Any]) -> list[Any]:
    """Return the variables without repetition, in order."""
    # `==` on variables builds an op.
    return list({id(variable): variable for variable in variables}.values())
