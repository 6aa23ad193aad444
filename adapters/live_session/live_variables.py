"""The eager variables of a Keras model, and their names in a live graph."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from hookbridge.adapters.guests.kinds import keras_behind
from hookbridge.ground import compat
from hookbridge.ground.protocols import KerasModel


class ModelVariable:
    """One variable of the model: its eager object and its name in the graph."""

    def __init__(
        self,
        eager: tf.Variable,
        name: str,
        *,
        trainable: bool,
        local: bool,
        is_weight: bool = False,
    ) -> None:
        self.eager = eager  # the `tf.Variable`, or a distributed one
        self.name = name  # the name wanted in the live graph, without `:0`
        self.trainable = trainable  # whether it goes to `TRAINABLE_VARIABLES`
        self.local = local  # of a metric: checkpoints leave it out
        self.is_weight = is_weight  # of a layer: neither of an optimizer nor a seed
        # Whether its replicas differ and its value is computed from them.
        self.is_aggregated = (
            len(components(eager)) > 1
            and eager.synchronization == tf.VariableSynchronization.ON_READ
        )

    @property
    def handle(self) -> Any:
        """The handle for reads and writes: the first replica's, or that of a copy."""
        first = components(self.eager)[0]
        return self._copy.handle if self.is_aggregated else first.handle

    @functools.cached_property
    def _copy(self) -> Any:
        first = components(self.eager)[0]
        # A graph of its own keeps the copy out of the strategy's scope.
        with tf.Graph().as_default(), compat.private("eager_mode")():
            return tf.Variable(tf.zeros(first.shape, first.dtype), trainable=False)

    def gather(self) -> None:
        """Computes the value of an aggregated variable before it is read."""
        with self.eager.distribute_strategy.scope():
            value = self.eager.read_value()
        self._copy.assign(value)

    def spread(self) -> None:
        """Copies a written value to all replicas."""
        if self.is_aggregated:
            with self.eager.distribute_strategy.scope():
                self.eager.assign(self._copy.read_value())
            return
        first, *others = components(self.eager)
        for other in others:
            other.assign(first.read_value())


def components(eager: tf.Variable) -> tuple[Any, ...]:
    """The variables of all replicas; the variable itself if it has none."""
    values = getattr(eager, "values", None)
    return tuple(values) if isinstance(values, tuple) else (eager,)


def tf_variable(variable: Any) -> Any:
    """The `tf.Variable` inside a Keras 3 variable; any other object as it is."""
    # A distributed variable looks for attributes in its value, and may compute it
    # with all other processes.
    if isinstance(variable, tf.Variable):
        return variable
    is_keras3 = hasattr(variable, "_value") and hasattr(variable, "path")
    return variable.value if is_keras3 else variable


def _name_of(variable: Any) -> str:
    is_keras3 = tf_variable(variable) is not variable
    return str(variable.path if is_keras3 else variable.name).split(":")[0]


def as_int(value: Any) -> int:
    """A number or a scalar variable of any kind, distributed ones included."""
    value = tf_variable(value)
    return int(value.numpy() if hasattr(value, "numpy") else value)


def is_in_graph(variable: tf.Variable) -> bool:
    """Whether a variable is one of a v1 graph, whose value Keras's session has."""
    return isinstance(getattr(variable, "graph", None), tf.Graph)


def assign_all(model: KerasModel, pairs: Sequence[tuple[Any, Any]]) -> None:
    """Sets variables of a model, in Keras's own session if the model is in a graph."""
    in_graph = [pair for pair in pairs if is_in_graph(pair[0])]
    if in_graph:
        keras_behind(model).backend.batch_set_value(in_graph)
    for variable, value in pairs:
        if not is_in_graph(variable):
            variable.assign(value)


def learning_rate_variable(optimizer: Any) -> Any:
    """The `tf.Variable` of a constant learning rate; None for a schedule."""
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    rate = getattr(inner, "_learning_rate", None)
    if rate is None and hasattr(inner, "_hyper"):  # optimizers of Keras <= 2.10
        rate = getattr(inner, "lr", None)
    rate = tf_variable(rate)
    if not isinstance(rate, tf.Variable):
        return None
    # Keras 3's `MultiOptimizer` has one that no update reads, and refuses to give it.
    return rate if hasattr(inner, "learning_rate") or hasattr(inner, "lr") else None


def _optimizers_of(model: KerasModel) -> list[tuple[str, Any]]:
    """The optimizers of a model with their names, without those within others."""
    optimizer = getattr(model, "optimizer", None)
    # Those of a GAN, say, are attributes that only its own `train_step` knows.
    others = [one for one in vars(model).items() if hasattr(one[1], "apply_gradients")]
    return [(getattr(optimizer, "name", "optimizer"), optimizer), *others]


def learning_rates(model: KerasModel) -> list[Any]:
    """The `tf.Variable`s of the constant rates that a step of the model may read."""
    optimizers = [optimizer for _, optimizer in _optimizers_of(model)]
    for optimizer in list(optimizers):
        optimizers += getattr(optimizer, "optimizers", ())
    rates = {id(rate): rate for rate in map(learning_rate_variable, optimizers)}
    return [rate for rate in rates.values() if rate is not None]


def _optimizer_variables(scope: str, optimizer: Any) -> list[tuple[Any, str]]:
    """The variables of an optimizer and its learning rate, with their names."""
    variables = getattr(optimizer, "variables", ())
    rate = learning_rate_variable(optimizer)
    every = [*(variables() if callable(variables) else variables)]
    every += [] if rate is None else [rate]
    # Keras 2 names some slots without the optimizer, or with a number. The variable of
    # the rate must not be `learning_rate:0`: that is the tensor that hooks feed.
    own = rf"^{re.escape(getattr(optimizer, 'name', ''))}(_\d+)?/"
    return [(v, f"{scope}/{re.sub(own, '', _name_of(v))}") for v in every]


def _variables_of_optimizers(model: KerasModel) -> list[tuple[Any, str]]:
    """The variables of all optimizers of a model, with their names."""
    return [
        pair for one in _optimizers_of(model) for pair in _optimizer_variables(*one)
    ]


def model_variables(model: KerasModel) -> list[ModelVariable]:
    """Every variable of a model, its optimizers and its metrics, each once."""
    of_metrics = [v for metric in model.metrics for v in metric.variables]
    local = {id(tf_variable(v)) for v in of_metrics}
    of_model = [*model.weights, *model.variables]
    own = [v for v in of_model if id(tf_variable(v)) not in local]
    names = [
        # As in a v1 graph, the name begins with the layer.
        *((v, _name_of(v).removeprefix(f"{model.name}/")) for v in own),
        *_variables_of_optimizers(model),
        *((v, f"metrics/{_name_of(v)}") for v in of_metrics),
    ]
    trainable = {id(tf_variable(v)) for v in model.trainable_variables}
    weights = {id(tf_variable(v)) for v in model.weights} - local
    variables: dict[int, ModelVariable] = {}
    for variable, name in names:
        eager = tf_variable(variable)
        key = id(eager)
        if key not in variables:
            variables[key] = ModelVariable(
                eager,
                name,
                trainable=key in trainable,
                local=key in local,
                is_weight=key in weights,
            )
    return [v for v in variables.values() if hasattr(components(v.eager)[0], "handle")]
