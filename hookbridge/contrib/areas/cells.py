"""`tf.contrib.rnn`: cells and functions that TensorFlow has under another name."""

from __future__ import annotations

import functools
from typing import Any

import tensorflow as tf


@functools.cache
def _cells() -> dict[str, Any]:
    v1: Any = tf.compat.v1.nn.rnn_cell

    class LSTMBlockCell(v1.LSTMCell):  # type: ignore[misc]
        """`tf.contrib.rnn.LSTMBlockCell`: an `LSTMCell` with the same variables."""

        def __init__(
            self,
            num_units: int,
            forget_bias: float = 1.0,
            cell_clip: float | None = None,
            use_peephole: bool = False,
            dtype: Any = None,
            reuse: Any = None,
            name: str = "lstm_cell",
        ) -> None:
            super().__init__(
                num_units,
                use_peepholes=use_peephole,
                cell_clip=cell_clip,
                forget_bias=forget_bias,
                reuse=reuse,
                name=name,
                dtype=dtype,
            )

    class GRUBlockCellV2(v1.GRUCell):  # type: ignore[misc]
        """`tf.contrib.rnn.GRUBlockCellV2`: a `GRUCell` with the same variables."""

        def __init__(
            self,
            num_units: int | None = None,
            cell_size: int | None = None,
            reuse: Any = None,
            name: str = "gru_cell",
        ) -> None:
            super().__init__(num_units or cell_size, reuse=reuse, name=name)

    made = (LSTMBlockCell, GRUBlockCellV2)
    return {cell.__name__: cell for cell in made}


def __getattr__(name: str) -> Any:
    # The classes derive from layers of Keras 2: Keras is loaded only if it is needed.
    if name in ("LSTMBlockCell", "GRUBlockCellV2"):
        return _cells()[name]
    raise AttributeError(f"module `{__name__}` has no attribute `{name}`")


def stack_bidirectional_dynamic_rnn(
    cells_fw: Any,
    cells_bw: Any,
    inputs: Any,
    initial_states_fw: Any = None,
    initial_states_bw: Any = None,
    dtype: Any = None,
    sequence_length: Any = None,
    parallel_iterations: Any = None,
    time_major: bool = False,
    scope: Any = None,
    swap_memory: bool = False,
) -> Any:
    """`tf.contrib.rnn.stack_bidirectional_dynamic_rnn`."""
    v1, states = tf.compat.v1, ([], [])  # type: ignore[var-annotated]
    with v1.variable_scope(scope or "stack_bidirectional_rnn"):
        for i, (forward, backward) in enumerate(zip(cells_fw, cells_bw, strict=True)):
            with v1.variable_scope(f"cell_{i}"):
                outputs, last = v1.nn.bidirectional_dynamic_rnn(
                    forward,
                    backward,
                    inputs,
                    initial_state_fw=initial_states_fw and initial_states_fw[i],
                    initial_state_bw=initial_states_bw and initial_states_bw[i],
                    sequence_length=sequence_length,
                    parallel_iterations=parallel_iterations,
                    dtype=dtype,
                    swap_memory=swap_memory,
                    time_major=time_major,
                )
            inputs = tf.concat(outputs, 2)
            for found, state in zip(states, last, strict=True):
                found.append(state)
    return inputs, tuple(states[0]), tuple(states[1])


def transpose_batch_time(x: Any) -> Any:
    """`tf.contrib.rnn.transpose_batch_time`: swaps the first two dimensions."""
    rest = range(2, len(x.shape))
    return tf.transpose(x, [1, 0, *rest])
