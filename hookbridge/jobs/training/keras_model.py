"""The Keras model of a definition file outside of graphs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import tensorflow as tf

from hookbridge import errors
from hookbridge.adapters.live_model.clone import keras_of
from hookbridge.ground import compat
from hookbridge.ground.protocols import KerasModel
from hookbridge.jobs.training.definition import ModelDefinition


def start_names(keras: Any) -> None:
    """Let Keras name layers from 1 again, so that each loop has the same names."""
    if compat.is_keras3(keras):
        keras.backend.clear_session()
    else:
        keras.backend.reset_uids()


def built_model(
    definition: ModelDefinition,
    batches: Any,
    seed: int | None,
    scope: AbstractContextManager[Any] | None = None,
) -> Any:
    """Return a model with weights: the first values depend on the seed alone."""
    for keras in compat.keras_flavours():
        start_names(keras)
        if seed is not None:
            keras.utils.set_random_seed(seed)
    with scope or contextlib.nullcontext():
        model = definition.custom_model()
        if not model.built:
            model(tf.nest.map_structure(_zeros, features_of(batches.element_spec)))
    return model


def compile_model(model: KerasModel, definition: ModelDefinition, batches: Any) -> None:
    """Compile a model with the file's loss, metrics and optimizer."""
    keras: Any = keras_of(model)
    outputs = getattr(model, "outputs", None) or [None]
    if len(outputs) > 1:
        raise errors.InvalidArgumentError(
            f"{definition.where('custom_model')} has {len(outputs)} outputs; expected "
            "one with --loop=fit, whose Keras takes a loss for each output. Use "
            "--loop=session or --loop=estimator."
        )
    spec = batches.element_spec
    labels = tf.nest.flatten(spec[1])[0] if isinstance(spec, tuple) else None
    metrics = [
        metric
        if hasattr(metric, "update_state")
        else keras.metrics.MeanMetricWrapper(_on_labels(metric, labels), name=name)
        for name, metric in definition.metrics().items()
    ]
    model.compile(
        optimizer=definition.optimizer(),
        loss=_on_labels(definition.loss, labels),
        metrics=metrics,
    )


def features_of(spec: object) -> Any:
    """Return the features of `(features, labels)`, or of features alone."""
    return spec[0] if isinstance(spec, tuple) else spec


def _on_labels(function: Callable[..., Any], labels: Any) -> Callable[..., Any]:
    """Return a loss or metric that gets labels of the dataset's type and rank.

    Keras changes both before it calls the function.
    """

    def called(y_true: Any, y_pred: Any) -> Any:
        if labels is not None:
            y_true = tf.cast(y_true, labels.dtype)
            rank = labels.shape.rank
            if rank is not None and y_true.shape.rank == rank + 1:
                y_true = tf.squeeze(y_true, -1)
            elif rank is not None and y_true.shape.rank == rank - 1:
                y_true = tf.expand_dims(y_true, -1)
        return tf.cast(function(y_true, y_pred), tf.float32)

    return called


def _zeros(spec: Any) -> Any:
    return tf.zeros([size or 1 for size in spec.shape.as_list()], spec.dtype)
