"""The training graph of a `tower_fn`: towers, named means of the batch, one update."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from hookbridge import errors
from hookbridge.loops.towers.build import VARIABLE_DEVICE
from hookbridge.loops.towers.replicate_model_fn import replicate_model_fn
from hookbridge.loops.towers.spec import (
    TRAIN,
    ModelFn,
    TowerSpec,
    as_pair,
    call_model_fn,
)


class TowerGraph(NamedTuple):
    """Handles into a training graph; logs are means over the batch.

    `learning_rate` is the variable, or the schedule's tensor, that `learning_rate:0`
    reads.
    """

    train_op: Any
    logs: Mapping[str, Any]
    learning_rate: Any
    optimizer: Any


def build_training(
    model_fn: ModelFn,
    batch: Any,
    *,
    optimizer: Callable[[Any], Any],
    learning_rate: float | Callable[[Any], Any],
    devices: Sequence[str],
) -> TowerGraph:
    """Builds the graph of one synchronous step in the default graph.

    Hooks fetch `loss:0`, `<metric>:0` and `learning_rate:0` as in `fit`, and may feed
    the last. A number as learning rate becomes a variable that callbacks can set.
    """
    graph = tf.compat.v1.get_default_graph()
    with tf.device(VARIABLE_DEVICE):
        step = global_step()
        source, rate = named_learning_rate(learning_rate, step)
        opt = optimizer(rate)
    # Reserves the name, so that a model's own op `loss` does not become `loss:0`.
    graph.unique_name("loss")

    def tower(features: Any, labels: Any, mode: str) -> TowerSpec:
        spec = call_model_fn(model_fn, features, labels, mode)
        pairs: list[Any] = []
        if tf.compat.v1.trainable_variables():
            pairs = opt.compute_gradients(spec.loss, colocate_gradients_with_ops=True)
        if all(gradient is None for gradient, _ in pairs):
            raise errors.InvalidArgumentError(
                "The loss of `tower_fn` depends on no trainable variable; expected at "
                "least one made by `tf.compat.v1.get_variable`."
            )
        updates = graph.get_collection(tf.compat.v1.GraphKeys.UPDATE_OPS)
        with tf.control_dependencies(updates):
            return spec._replace(train_op=opt.apply_gradients(pairs, global_step=step))

    features, labels = as_pair(batch)
    whole = replicate_model_fn(tower, devices)(features, labels, TRAIN)
    with tf.device(VARIABLE_DEVICE):
        logs = {name: _named(name, mean) for name, mean in whole.metrics.items()}
        # The trailing slash uses the name exactly, although it was reserved above.
        logs["loss"] = tf.identity(whole.loss, name="loss/")
    return TowerGraph(whole.train_op, logs, source, opt)


def global_step() -> Any:
    """The global step as a reference variable: `global_step:0` is its value."""
    with tf.compat.v1.variable_scope(
        tf.compat.v1.get_variable_scope(), use_resource=False
    ):
        return tf.compat.v1.train.get_or_create_global_step()


def named_learning_rate(value: Any, step: Any) -> tuple[Any, Any]:
    """The source of the learning rate, and the tensor `learning_rate:0`."""
    if callable(value):
        rate = tf.identity(tf.cast(value(step), tf.float32), name="learning_rate")
        return rate, rate
    variable = tf.compat.v1.get_variable(
        "optimizer/learning_rate",
        shape=(),
        dtype=tf.float32,
        initializer=tf.compat.v1.constant_initializer(value),
        trainable=False,
    )
    return variable, tf.identity(variable, name="learning_rate")


def _named(name: str, mean: Any) -> Any:
    if mean.op.name == name:  # of a single tower
        return mean
    graph = tf.compat.v1.get_default_graph()
    if graph.unique_name(name, mark_as_used=False) != name:
        raise errors.InvalidArgumentError(
            f"`tower_fn` made an operation named `{name}` and a metric `{name}`; "
            f"`{name}:0` has to be the mean over the towers. Give the operation "
            f"another name, for example `tower_{name}`."
        )
    return tf.identity(mean, name=name)
