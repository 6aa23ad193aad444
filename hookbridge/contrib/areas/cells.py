"""`tf.contrib.rnn`: cells and functions that TensorFlow has under another name."""

from __future__ import annotations

from typing import Any

import tensorflow as tf


def of_keras2(name: str) -> Any:
    """Return a class of `tf.nn.rnn_cell` to derive from.

    Modules of classes that derive from it can be imported with Keras 3 too; there, an
    object raises TensorFlow's error when it is made.
    """
    try:
        return getattr(tf.compat.v1.nn.rnn_cell, name)
    except AttributeError as e:
        error = e

    class Unavailable:
        def __init__(self, *args: Any, **named: Any) -> None:
            raise error

    return Unavailable


RNNCell: Any = of_keras2("RNNCell")
# The base of TensorFlow's own cells, which it does not export: of cells with weights.
LayerRNNCell: Any = next(
    (k for k in of_keras2("BasicRNNCell").__mro__ if k.__name__ == "LayerRNNCell"),
    RNNCell,
)


def stack_bidirectional_dynamic_rnn(
    cells_fw: Any,
    cells_bw: Any,
    inputs: object,
    initial_states_fw: Any = None,
    initial_states_bw: Any = None,
    dtype: object = None,
    sequence_length: object = None,
    *,
    scope: object = None,
    **options: Any,
) -> Any:
    """`tf.contrib.rnn.stack_bidirectional_dynamic_rnn`."""
    v1, states = tf.compat.v1, []
    with v1.variable_scope(scope or "stack_bidirectional_rnn"):
        for i, (forward, backward) in enumerate(zip(cells_fw, cells_bw, strict=True)):
            with v1.variable_scope(f"cell_{i}"):
                outputs, final_states = v1.nn.bidirectional_dynamic_rnn(
                    forward,
                    backward,
                    inputs,
                    sequence_length,
                    initial_states_fw and initial_states_fw[i],
                    initial_states_bw and initial_states_bw[i],
                    dtype,
                    **options,
                )
            inputs = tf.concat(outputs, 2)
            states.append(final_states)
    return inputs, *zip(*states, strict=True)


def transpose_batch_time(x: Any) -> Any:
    """`tf.contrib.rnn.transpose_batch_time`: swaps the first two dimensions."""
    rank = x.shape.rank
    if rank is not None:
        return tf.transpose(x, [1, 0, *range(2, rank)])
    return tf.transpose(x, tf.concat([[1, 0], tf.range(2, tf.rank(x))], 0))
