"""The eager variables of a Keras model, and their names in a live graph."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import tensorflow as tf

from hookbridge.adapters.guests.kinds import keras_behind
from hookbridge.adapters.keras_model.optimizers import (
    inner_optimizer,
    is_in_graph,
    name_of,
    optimizers_of,
    tf_variable,
    variables_of,
)
from hookbridge.adapters.keras_model.v1_optimizers import named_variables, v1_inside
from hookbridge.ground import compat
from hookbridge.ground.protocols import KerasModel, Optimizer, Variable


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
        is_of_optimizer: bool = False,
    ) -> None:
        self.eager = eager  # the `tf.Variable`, or a distributed one
        self.name = name  # the name wanted in the live graph, without `:0`
        self.trainable = trainable  # whether it goes to `TRAINABLE_VARIABLES`
        self.local = local  # of a metric: checkpoints leave it out
        self.is_weight = is_weight  # of a layer: neither of an optimizer nor a seed
        self.is_of_optimizer = is_of_optimizer
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
        return host_variable(lambda: tf.zeros(first.shape, first.dtype))

    def gather(self) -> None:
        """Compute the value of an aggregated variable before it is read."""
        with self.eager.distribute_strategy.scope():
            value = self.eager.read_value()
        self._copy.assign(value)

    def spread(self) -> None:
        """Copy a written value to all replicas."""
        if self.is_aggregated:
            with self.eager.distribute_strategy.scope():
                self.eager.assign(self._copy.read_value())
            return
        first, *replicas = components(self.eager)
        for replica in replicas:
            replica.assign(first.read_value())


def host_variable(value: Callable[[], Any], name: str | None = None) -> Any:
    """Make an eager variable that is one value on the host under any strategy.

    Args:
      value: returns the first value, called where the variable is made.
      name: the name of the variable; None for TensorFlow's default.
    """
    # A graph of its own keeps it out of the strategy's scope.
    with tf.Graph().as_default(), compat.private("eager_mode")():
        return tf.Variable(value(), trainable=False, name=name)


def components(eager: tf.Variable) -> tuple[Any, ...]:
    """Return the variables of all replicas; the variable itself if it has none."""
    values = getattr(eager, "values", None)
    return tuple(values) if isinstance(values, tuple) else (eager,)


def _name_of(variable: Any) -> str:
    is_keras3 = tf_variable(variable) is not variable
    return str(variable.path if is_keras3 else variable.name).split(":")[0]


def assign_all(model: KerasModel, pairs: Sequence[tuple[Any, Any]]) -> None:
    """Set variables of a model, in Keras's own session if the model is in a graph.

    Args:
      model: the model that has them.
      pairs: `(variable, value)`, each value an array of the variable's shape.
    """
    in_graph = [pair for pair in pairs if is_in_graph(pair[0])]
    if in_graph:
        keras_behind(model).backend.batch_set_value(in_graph)
    for variable, value in pairs:
        if not is_in_graph(variable):
            variable.assign(value)


def _variables_of_optimizers(model: KerasModel) -> list[tuple[Any, str]]:
    """Return the variables of all optimizers of a model, with their names."""
    named: list[tuple[Any, str]] = []
    for scope, optimizer in optimizers_of(model):
        if v1_inside(optimizer) is not None:
            weights = [
                (tf_variable(v), _name_in_model(v, model))
                for v in model.trainable_variables
            ]
            pairs = named_variables(optimizer, weights, scope)
            # A v1 saver has named those in a graph.
            named += [(v, _name_of(v) if is_in_graph(v) else n) for v, n in pairs]
            continue
        named += [
            (variable, _name_in_optimizer(variable, scope, optimizer))
            for variable in variables_of(optimizer)
        ]
    return named


def _name_in_model(variable: Variable, model: KerasModel) -> str:
    """Return the name of a weight, which begins with the layer as in a v1 graph."""
    return _name_of(variable).removeprefix(f"{model.name}/")


def _name_in_optimizer(variable: Variable, scope: str, optimizer: Optimizer) -> str:
    """Return the name of an optimizer's variable, below the scope of the optimizer."""
    if is_in_graph(variable):  # which a v1 saver has named it by
        return _name_of(variable)
    # Keras 2 names some slots without the optimizer, or with a number. The variable of
    # the rate must not be `learning_rate:0`: that is the tensor that hooks feed.
    inner = inner_optimizer(optimizer)
    is_legacy = hasattr(inner, "_hyper")
    # Those of the module `legacy` make slots in the scopes of their first update.
    scopes, named = ("(.*?/)?", inner) if is_legacy else ("", optimizer)
    prefix = rf"^{scopes}{re.escape(name_of(named))}(_\d+)?/"
    return f"{scope}/{re.sub(prefix, '', _name_of(variable))}"


def model_variables(model: KerasModel) -> list[ModelVariable]:
    """Return each variable of a model, its optimizers and its metrics once."""
    of_metrics = [v for metric in model.metrics for v in metric.variables]
    local = _ids(of_metrics)
    of_model = [*model.weights, *model.variables]
    not_of_metrics = [v for v in of_model if id(tf_variable(v)) not in local]
    of_optimizers = _variables_of_optimizers(model)
    names = [
        *((v, _name_in_model(v, model)) for v in not_of_metrics),
        *of_optimizers,
        *((v, f"metrics/{_name_of(v)}") for v in of_metrics),
    ]
    trainable = _ids(model.trainable_variables)
    weights = _ids(model.weights) - local
    slots = _ids(v for v, _ in of_optimizers)
    variables: dict[int, ModelVariable] = {}
    # Keras 3 gives the same name to both slots of Adafactor. The names that a file has
    # are those of a live graph, where the global step is the first.
    graph = tf.Graph()
    graph.unique_name("global_step")
    for variable, name in names:
        eager = tf_variable(variable)
        key = id(eager)
        if key not in variables and hasattr(components(eager)[0], "handle"):
            variables[key] = ModelVariable(
                eager,
                graph.unique_name(name),
                trainable=key in trainable,
                local=key in local,
                is_weight=key in weights,
                is_of_optimizer=key in slots,
            )
    return list(variables.values())


def _ids(variables: Iterable[Any]) -> set[int]:
    """Return the ids of TensorFlow's variables behind those of Keras."""
    return {id(tf_variable(variable)) for variable in variables}
