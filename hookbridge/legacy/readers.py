"""Queue readers that are on the CPU, also in a block for a GPU.

TensorFlow 1 put them there where the GPU was missing; TensorFlow 2 refuses to, even
with `allow_soft_placement`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf

# What a reader does by operations, of which the CPU alone has versions.
_METHODS = (
    "__init__",
    "num_records_produced",
    "num_work_units_completed",
    "read",
    "read_up_to",
    "reset",
    "restore_state",
    "serialize_state",
)


def methods_on_the_cpu(kind: type) -> dict[str, Callable[..., Any]]:
    """Return the methods of a class of readers, with their operations on the CPU."""
    return {name: _on_the_cpu(getattr(kind, name)) for name in _METHODS}


def _on_the_cpu(plain: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method whose operations are on the CPU of the task."""

    @functools.wraps(plain)
    def method(*args: Any, **named: Any) -> Any:
        with tf.device("/device:CPU:*"):  # of the number that the queue has
            return plain(*args, **named)

    return method


def _reader(name: str) -> Any:
    """Return a reader of TensorFlow 1 that is on the CPU."""
    kind = getattr(tf.compat.v1, name)
    return type(name, (kind,), {**methods_on_the_cpu(kind), "__module__": __name__})


FixedLengthRecordReader: Any = _reader("FixedLengthRecordReader")
IdentityReader: Any = _reader("IdentityReader")
TFRecordReader: Any = _reader("TFRecordReader")
TextLineReader: Any = _reader("TextLineReader")
WholeFileReader: Any = _reader("WholeFileReader")
