"""Gradients of several towers as one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def average_gradients(
    towers: Sequence[Sequence[tuple[Any, Any]]], *, divisor: float | None = None
) -> list[tuple[Any, Any]]:
    """Averages what `Optimizer.compute_gradients` gave in each tower.

    With towers of equal size and a loss that is a mean over examples the result
    is the gradient of the mean loss over the whole batch.

    Args:
      towers: for each tower its `(gradient, variable)` pairs, in the same order of
        variables. A gradient is a tensor, an `IndexedSlices` or None.
      divisor: what the sum is divided by; None: the number of towers. Use 1.0 for
        a loss that is a sum over examples.

    Returns:
      One `(gradient, variable)` pair for each variable. Where every tower has
      `IndexedSlices` the result is `IndexedSlices` (rows appended, values divided),
      where some have, it is dense. A tower without a gradient for the variable
      counts as zero; if no tower has one, the gradient is None.
    """
    divisor = float(len(towers)) if divisor is None else divisor
    merged = []
    for pairs in zip(*towers, strict=True):
        gradients = [gradient for gradient, _ in pairs if gradient is not None]
        merged.append((_average(gradients, divisor), pairs[0][1]))
    return merged


def computed(pairs: Sequence[tuple[Any, Any]]) -> list[Any]:
    """What an update has to wait for so that it happens as a whole or not at all.

    Parts of an optimizer's update need no gradient, such as the decay of Adam's
    sparse moments. Without waiting they run in the step that meets the end of the
    data, too.
    """
    import tensorflow as tf

    return [
        gradient.values if isinstance(gradient, tf.IndexedSlices) else gradient
        for gradient, _ in pairs
        if gradient is not None
    ]


def _average(gradients: list[Any], divisor: float) -> Any:
    import tensorflow as tf

    if not gradients:
        return None
    if all(isinstance(gradient, tf.IndexedSlices) for gradient in gradients):
        values = tf.concat([gradient.values for gradient in gradients], axis=0)
        return tf.IndexedSlices(
            values=values / tf.cast(divisor, values.dtype),
            indices=tf.concat([gradient.indices for gradient in gradients], axis=0),
            dense_shape=gradients[0].dense_shape,
        )
    total = tf.add_n([tf.convert_to_tensor(gradient) for gradient in gradients])
    return total / tf.cast(divisor, total.dtype)
