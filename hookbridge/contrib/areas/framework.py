"""`tf.contrib.framework`: functions whose arguments have other names today."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

v1: Any = tf.compat.v1


def py_func(
    func: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    output_types: object = None,
    output_shapes: object = None,
    stateful: bool = True,
    name: str | None = None,
) -> Any:
    """`tf.contrib.framework.py_func`: a function of Python as an op.

    The types, and the shapes, may be nested, and functions of the arguments.
    """
    named = dict(kwargs or {})
    all_arguments = (list(args), named)
    types, shapes = (
        spec(*args, **named) if callable(spec) and not isinstance(spec, type) else spec
        for spec in (output_types, output_shapes)
    )

    def flat(*values: Any) -> list[Any]:
        places, names = tf.nest.pack_sequence_as(all_arguments, values)
        return list(v1.nest.flatten(func(*places, **names)))

    inputs = v1.nest.flatten(all_arguments)
    results = v1.py_func(flat, inputs, v1.nest.flatten(types), stateful, name)
    packed = tf.nest.pack_sequence_as(types, results)
    if shapes is not None:
        tf.__internal__.nest.map_structure_up_to(
            types, lambda result, shape: result.set_shape(shape), packed, shapes
        )
    return packed


def load_checkpoint(filepattern: str) -> Any:
    """`tf.contrib.framework.load_checkpoint`."""
    return tf.train.load_checkpoint(filepattern)


def load_variable(checkpoint_dir: str, name: str) -> Any:
    """`tf.contrib.framework.load_variable`."""
    return tf.train.load_variable(checkpoint_dir, name)


def list_variables(checkpoint_dir: str) -> Any:
    """`tf.contrib.framework.list_variables`."""
    return tf.train.list_variables(checkpoint_dir)


def init_from_checkpoint(checkpoint_dir: str, assignment_map: object) -> Any:
    """`tf.contrib.framework.init_from_checkpoint`."""
    return v1.train.init_from_checkpoint(checkpoint_dir, assignment_map)
