"""What a program has put into a graph's collections, read as what it means.

TensorFlow takes anything into a collection: a variable, a tensor that reads one, a
partitioned variable, a list, None, the same object twice. Its own functions return what
they find there. Whoever needs a variable, an op or a saver asks here.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

import tensorflow as tf

from hookbridge import errors
from hookbridge.ground.protocols import Graph, Tensor, Variable

_KEYS = tf.compat.v1.GraphKeys
_VARIABLES = (tf.Variable, tf.distribute.DistributedValues)
# The types of the ops of variables.
VARIABLES = ("VarHandleOp", "VariableV2", "Variable")
# Ops that hand on the value of a variable, in its own type or another one.
_HAND_ON = ("Identity", "RefIdentity", "ReadVariableOp", "Cast", "Enter", "RefEnter")


def handle_op(variable: Variable) -> Any:
    """Return the op of a variable: its resource handle or its reference."""
    handle = getattr(variable, "handle", None)
    return handle.op if handle is not None and hasattr(handle, "op") else variable.op


def origin(tensor: Tensor) -> Any:
    """Return the tensor that a value comes from, looking through casts and reads."""
    while tensor.op.type in _HAND_ON and tensor.op.inputs:
        tensor = tensor.op.inputs[0]
    return tensor


def variable_behind(tensor: Tensor) -> Any:
    """Return the variable, of any collection, whose value a tensor has, or None."""
    op, graph = origin(tensor).op, tensor.graph
    if op.type not in VARIABLES:
        return None
    every = (graph.get_collection(key) for key in graph.get_all_collection_keys())
    entries = (entry for entries in every for entry in entries)
    candidates = (entry for entry in _leaves(entries) if isinstance(entry, tf.Variable))
    return next((v for v in candidates if handle_op(v) is op), None)


def value_of(tensor: Tensor) -> Any:
    """Return a tensor that can be fetched.

    For the handle of a variable, the variable's value.

    The name that TensorFlow prints for a resource variable is that of its handle.
    """
    if tensor.dtype.base_dtype != tf.resource:
        return tensor
    variable = variable_behind(tensor)
    return tensor if variable is None else tensor.graph.as_graph_element(variable)


def variables(graph: Graph, *keys: str) -> list[Any]:
    """Return the variables in collections, in order, each once.

    Partitioned ones in parts.
    """
    entries = (entry for key in keys for entry in graph.get_collection(key))
    leaves = (_as_variable(leaf) for leaf in _leaves(entries))
    # `==` on variables builds an op.
    return list({id(v): v for v in leaves if v is not None}.values())


def operations(graph: Graph, key: str) -> list[Any]:
    """Return the ops of a collection, those of its tensors and names too.

    Args:
      graph: the graph that has the collection.
      key: the collection.
    """
    elements = _elements(graph, key)
    return list(dict.fromkeys(getattr(element, "op", element) for element in elements))


def tensors(graph: Graph, key: str) -> list[Any]:
    """Return the tensors of a collection, as often as it has them.

    Args:
      graph: the graph that has the collection.
      key: the collection, such as `LOSSES`.
    """
    return [t for t in _elements(graph, key) if isinstance(t, tf.Tensor)]


def savers(graph: Graph) -> list[Any]:
    """Return the savers of a graph, each once."""
    entries = graph.get_collection(_KEYS.SAVERS)
    return list({id(saver): saver for saver in entries if is_saver(saver)}.values())


def is_saver(value: object) -> bool:
    """Return whether an entry of the collection `SAVERS` saves and restores."""
    return all(callable(getattr(value, name, None)) for name in ("save", "restore"))


def eval_step(graph: Graph) -> Any:
    """Return the variable that counts an evaluation's steps; None in a training."""
    return next(iter(variables(graph, _KEYS.EVAL_STEP)), None)


def global_step(graph: Graph) -> Any:
    """Return the variable that counts the steps of a training.

    None if the graph has none.

    As `tf.compat.v1.train.get_global_step`, it is in the collection `GLOBAL_STEP` or
    has the name `global_step`. That function returns a tensor for the second one, and
    what a program has put there for the first.

    Raises:
      errors.InvalidArgumentError: a program has put a tensor there that is computed.
    """
    listed = graph.get_collection(_KEYS.GLOBAL_STEP)
    counters = variables(graph, _KEYS.GLOBAL_STEP)
    if not listed:
        with contextlib.suppress(KeyError, ValueError):
            named = graph.as_graph_element("global_step:0", allow_operation=False)
            counters = [v for v in [variable_behind(named)] if v is not None]
    elif not counters:
        _refuse_computed(tensors(graph, _KEYS.GLOBAL_STEP))
    # With several of them TensorFlow finds none, too.
    return counters[0] if len(counters) == 1 and _counts(counters[0]) else None


def _counts(variable: Variable) -> bool:
    dtype = variable.dtype.base_dtype
    return variable.shape.rank in (0, None) and (dtype.is_integer or dtype.is_floating)


def _refuse_computed(listed: Iterable[Any]) -> None:
    tensor = next(iter(listed), None)
    if tensor is not None:
        raise errors.InvalidArgumentError(
            f'The collection `GLOBAL_STEP` of the graph has the tensor "{tensor.name}"'
            f", which a `{tensor.op.type}` computes; expected the variable that counts "
            "the steps, or a cast of it: "
            "`tf.compat.v1.train.get_or_create_global_step()`."
        )


def _elements(graph: Graph, key: str) -> Iterator[Any]:
    """Yield the tensors and ops of a collection that the graph knows."""
    for leaf in _leaves(graph.get_collection(key)):
        with contextlib.suppress(AttributeError, KeyError, TypeError, ValueError):
            yield graph.as_graph_element(leaf)


def _leaves(entries: Iterable[Any]) -> Iterator[Any]:
    """Yield the entries, and those in lists and partitioned variables."""
    for entry in entries:
        if _is_leaf(entry):
            yield entry
        else:
            yield from _leaves(entry)


def _is_leaf(entry: object) -> bool:
    # A tensor can be iterated over, or says that it cannot.
    is_one = tf.is_tensor(entry) or isinstance(entry, (str, bytes, *_VARIABLES))
    return is_one or not isinstance(entry, Iterable)


def _as_variable(entry: object) -> Any:
    """Return the variable that an entry is or reads; None for anything else."""
    if isinstance(entry, tf.Tensor):
        return variable_behind(entry)
    return entry if isinstance(entry, _VARIABLES) else None
