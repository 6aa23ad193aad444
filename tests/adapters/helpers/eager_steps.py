"""A step of a training loop that a user writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf


def descended(model: Any, loss_of: Callable[[], Any], optimizer: Any = None) -> Any:
    """Makes a step on a model's weights, by its own optimizer; returns the loss."""
    with tf.GradientTape() as tape:
        loss = loss_of()
    weights = model.trainable_variables
    pairs = zip(tape.gradient(loss, weights), weights, strict=True)
    (optimizer or model.optimizer).apply_gradients(pairs)
    return loss
