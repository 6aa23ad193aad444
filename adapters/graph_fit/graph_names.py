"""The tensors of a model in a v1 graph, and the names by which hooks find them."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from hookbridge.adapters.fit_loop.eager_step import names_for
from hookbridge.adapters.keras_model.optimizers import optimizer_of, scheduled_rate
from hookbridge.ground.patching import patched
from hookbridge.ground.protocols import KerasModel

# The name of the rate that the graph computes for hooks alone.
COMPUTED_RATE = "learning_rate_of_the_step"


class GraphNames:
    """The names that hookbridge promises, beside those of the graph.

    They are tried in this order: the names of the graph; `loss:0`, the metrics,
    `learning_rate:0`, `global_step:0` and, in training, the gradients; the names of the
    graph without what Keras made up.
    """

    def __init__(
        self, model: KerasModel, graph: tf.Graph, aliases: Mapping[str, Any]
    ) -> None:
        self._model = model
        self._graph = graph
        self._aliases = {f"{name}:0": tensor for name, tensor in aliases.items()}
        # The class's own method: an outer run may have replaced it on the instance.
        self._lookup = type(graph).as_graph_element.__get__(graph)
        self._values: dict[str, Any] | None = None

    def installed(self) -> contextlib.AbstractContextManager[None]:
        """Return a context in which the graph looks names up with `find`."""
        return patched(self._graph, as_graph_element=self.find)

    def find(
        self, obj: object, allow_tensor: bool = True, allow_operation: bool = True
    ) -> Any:
        try:
            element = self._lookup(obj, allow_tensor, allow_operation)
        except KeyError as e:
            if not isinstance(obj, str):
                raise
            tensor = self._aliases.get(obj if ":" in obj else f"{obj}:0")
            if tensor is None:
                names, ops = names_for(self._model), self._graph.get_operations()
                names.add_traced(t for op in ops for t in op.outputs)
                item = names.find(obj)
                if item is None:
                    raise names.no_tensor_error(
                        e, obj, "the graph", self._aliases
                    ) from e
                tensor = self._lookup(item.key)
            return tensor if ":" in obj else tensor.op
        return self._value(element) if isinstance(obj, str) else element

    def _value(self, element: tf.Tensor | tf.Operation) -> Any:
        """Return the value of a variable for its handle; anything else as it is."""
        if not isinstance(element, tf.Tensor) or element.dtype != tf.resource:
            return element
        if self._values is None or element.name not in self._values:
            variables = [
                *tf.compat.v1.global_variables(),
                *tf.compat.v1.local_variables(),
                *self._model.variables,
            ]
            self._values = {
                v.handle.name: v._graph_element
                for v in variables
                if hasattr(v, "handle")
            }
        return self._values.get(element.name, element)


def learning_rate(model: KerasModel) -> Any:
    """Return the learning rate: a variable, a schedule or None."""
    # Optimizers of v1 graphs, of `optimizer_v1`, have `lr` alone.
    optimizer = getattr(model, "optimizer", None)
    rate = getattr(optimizer, "learning_rate", None)
    return getattr(optimizer, "lr", None) if rate is None else rate


def rate_tensor(model: KerasModel, counter: tf.Variable) -> Any:
    """Return the tensor that `learning_rate:0` means, or None."""
    # The value of a schedule or a decay is computed for hooks alone: they can fetch it,
    # not feed it.
    value = scheduled_rate(optimizer_of(model), counter)
    if value is None:
        rate = learning_rate(model)
        return getattr(rate, "_graph_element", rate)
    tensor = tf.identity(value, name=COMPUTED_RATE)
    tensor.graph.prevent_feeding(tensor)
    return tensor


def reads(variable: tf.Variable) -> list[Any]:
    """Return the tensors by which the graph reads a variable."""
    return [op.outputs[0] for op in _uses(variable) if op.type == "ReadVariableOp"]


def gradients(model: KerasModel) -> dict[str, Any]:
    """Return `{"gradients/<variable>": tensor}` of the dense gradients."""
    tensors = {}
    for variable in model.trainable_weights:
        for op in _uses(variable):
            if not op.type.startswith("ResourceApply"):
                continue
            name = variable.op.name.removeprefix(f"{model.name}/")
            for arg, tensor in zip(op.op_def.input_arg, op.inputs, strict=True):
                if arg.name in ("grad", "delta"):
                    tensors[f"gradients/{name}"] = tensor
    return tensors


def _uses(variable: tf.Variable) -> list[Any]:
    """Return the ops that use a resource variable; none of another variable."""
    handle = getattr(variable, "handle", None)
    return [] if handle is None else list(handle.consumers())
