"""`_linear` and `_Linear`, which programs take from files of `tf.contrib.rnn`."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

v1: Any = tf.compat.v1


class Linear:
    """A linear map of one part `[batch, depth]`, or of several parts side by side.

    Its variables are `kernel` and `bias` in the scope where it is made.
    """

    def __init__(
        self,
        args: object,
        output_size: int,
        build_bias: bool,
        bias_initializer: object = None,
        kernel_initializer: object = None,
    ) -> None:
        parts = _as_list(args)
        if not parts:
            raise ValueError("`args` must be specified")
        sizes = [part.shape[1:].as_list() for part in parts]
        if not all(len(size) == 1 and size[0] for size in sizes):
            shapes = [part.shape for part in parts]
            raise ValueError(f"linear is expecting 2D arguments, got {shapes}")
        dtype, depth = parts[0].dtype, sum(size[0] for size in sizes)
        self._weights = v1.get_variable(
            "kernel", [depth, output_size], dtype, kernel_initializer
        )
        self._biases = None
        if build_bias:
            with v1.variable_scope(v1.get_variable_scope()) as scope:
                scope.set_partitioner(None)
                zeros = v1.zeros_initializer()
                self._biases = v1.get_variable(
                    "bias", [output_size], dtype, bias_initializer or zeros
                )

    def __call__(self, args: object) -> Any:
        """Return the map of parts, as `[batch, output_size]`."""
        result = tf.matmul(tf.concat(_as_list(args), 1), self._weights)
        return result if self._biases is None else tf.nn.bias_add(result, self._biases)


def linear(
    args: object,
    output_size: int,
    bias: bool,
    *initializers: Any,
    **named_initializers: Any,
) -> Any:
    """Map parts linearly, by variables made or found in the scope."""
    return Linear(args, output_size, bias, *initializers, **named_initializers)(args)


def _as_list(args: object) -> list[Any]:
    return list(args) if isinstance(args, list | tuple) else [args]
