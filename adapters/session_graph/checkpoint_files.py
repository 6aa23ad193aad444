"""TF1-style checkpoints of plain arrays, written and read outside any graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from hookbridge import compat


def write(prefix: str, values: Mapping[str, Any]) -> str:
    """Writes arrays as an ordinary TF1 checkpoint.

    A `tf.compat.v1.train.Saver` with variables of these names restores it.

    Args:
      prefix: path without the `.index` and `.data` suffixes.
      values: `{variable name without ":0": array}`.

    Returns:
      The prefix.
    """
    import tensorflow as tf

    names = sorted(values)
    with compat.private("eager_mode")(), tf.device("/cpu:0"):
        tf.raw_ops.SaveV2(
            prefix=tf.constant(prefix),
            tensor_names=tf.constant(names),
            shape_and_slices=tf.constant([""] * len(names)),
            tensors=[tf.constant(np.asarray(values[name])) for name in names],
        )
    return prefix


def read(prefix: str) -> dict[str, Any]:
    """Reads every tensor of a checkpoint as `{name: array}`."""
    import tensorflow as tf

    reader = tf.train.load_checkpoint(prefix)
    return {
        name: reader.get_tensor(name)
        for name in sorted(reader.get_variable_to_shape_map())
    }
