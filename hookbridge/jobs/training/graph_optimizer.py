"""A definition file's optimizer in a graph of TF1."""

from __future__ import annotations

import sys
from typing import Any

import tensorflow as tf

from hookbridge import errors
from hookbridge.adapters.guests import kinds
from hookbridge.ground import compat
from hookbridge.ground.arguments import parameters_of
from hookbridge.jobs.training.definition import ModelDefinition

v1 = tf.compat.v1
# What only Keras's optimizers since 2.11 have: what changes them, and the rest.
_CHANGES = ("weight_decay", "use_ema")
_NEW = {
    *_CHANGES,
    "ema_momentum",
    "ema_overwrite_frequency",
    "jit_compile",
    "is_legacy_optimizer",
}


class GraphOptimizer:
    """Makes a file's optimizer in each graph.

    Hooks read and feed its learning rate as `learning_rate:0`, as in `fit`; one of
    TF1 has it as the default of the function's argument `learning_rate`. Keras's
    optimizers since 2.11 update variables only eagerly. So the older ones, under
    `optimizers.legacy`, replace them; their formulas are the same.
    """

    def __init__(self, definition: ModelDefinition) -> None:
        self._definition = definition
        with tf.Graph().as_default():
            # An optimizer of TF1 may take a tensor of a graph.
            optimizer = definition.optimizer()
        self._legacy: Any = None
        if isinstance(optimizer, v1.train.Optimizer):
            return
        self._keras = kinds.keras_behind(optimizer) or sys.modules["keras"]
        if compat.is_keras3(self._keras):
            raise self._refused("a Keras 3 optimizer")
        # Only an eager optimizer knows the value of its learning rate.
        config = definition.optimizer().get_config()
        kind = type(optimizer).__name__
        for name in _CHANGES:
            if config.get(name):
                raise self._refused(f"`{kind}` with {name}={config[name]}")
        self._legacy = getattr(self._keras.optimizers.legacy, kind, None)
        if self._legacy is None:
            raise self._refused(f"`{kind}`")
        self._config = {k: v for k, v in config.items() if k not in _NEW}
        self._rate = self._config.pop("learning_rate")

    def _refused(self, what: str) -> errors.RefusedError:
        return errors.RefusedError(
            f"{self._definition.where('optimizer')} is {what}, which cannot update the "
            "variables of a graph; expected one of `tf.compat.v1.train`, or one of "
            "Keras 2 that `tf.keras.optimizers.legacy` has too (with "
            "TF_USE_LEGACY_KERAS=1 and tf_keras). Or use --loop=fit.",
            see="model definition file",
        )

    def make(self) -> Any:
        """Return an optimizer of TF1 for the default graph."""
        step = v1.train.get_or_create_global_step()
        if self._legacy is None:
            rates = parameters_of(self._definition.module.optimizer)
            parameter = rates.get("learning_rate")
            if parameter is None or parameter.default is parameter.empty:
                return self._definition.optimizer()
            rate = _named_learning_rate(parameter.default, step)
            return self._definition.optimizer(learning_rate=rate)
        rate = self._rate
        if isinstance(rate, dict):
            rate = self._keras.optimizers.schedules.deserialize(rate)
        rate = _named_learning_rate(rate, step)
        config = {**self._config, "learning_rate": lambda: rate}
        optimizer = self._legacy.from_config(config)
        optimizer.iterations = step
        return _AsV1Optimizer(optimizer)


def _named_learning_rate(value: object, step: object) -> Any:
    """Return `learning_rate:0`: a schedule's, or a variable that guests can set."""
    if callable(value):
        return tf.identity(tf.cast(value(step), tf.float32), name="learning_rate")
    variable = v1.get_variable(
        "optimizer/learning_rate",
        shape=(),
        dtype=tf.float32,
        initializer=v1.constant_initializer(value),
        trainable=False,
    )
    return tf.identity(variable, name="learning_rate")


class _AsV1Optimizer(tf.compat.v1.train.Optimizer):  # type: ignore[misc]
    """A Keras 2 optimizer, which counts the steps itself, as one of TF1."""

    def __init__(self, optimizer: Any) -> None:
        super().__init__(use_locking=False, name=type(optimizer).__name__)
        self._keras_optimizer = optimizer

    def apply_gradients(
        self, grads_and_vars: Any, global_step: Any = None, name: str | None = None
    ) -> Any:
        """Apply gradients."""
        return self._keras_optimizer.apply_gradients(list(grads_and_vars), name=name)
