"""The results of a scheduled step, joined into few tensors.

Each output of a scheduled function costs the coordinator a call to the worker. So a
step joins its results (the logs of Keras and the tensors that hooks want) into one
vector for each dtype, and the coordinator splits the vectors again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from hookbridge import compat
from hookbridge.adapters.parameter_server.preemption import PREEMPTED

_POLL_SECS = 3e-4


class _Slot(NamedTuple):
    """The place of one output: its vector, its part of the vector, its shape."""

    vector: int
    start: int
    stop: int
    shape: tuple[int, ...] | None


class Layout:
    """How the outputs of one step are joined; filled while the step is traced."""

    def __init__(self) -> None:
        self._structure: Any = None
        self._slots: list[_Slot] = []

    def pack(self, outputs: Any) -> list[Any]:
        """Joins a structure of tensors; called in the function being traced."""
        self._structure = outputs
        self._slots = []
        vectors: list[list[Any]] = []
        lengths: list[int] = []
        of_dtype: dict[Any, int] = {}
        for leaf in tf.nest.flatten(outputs, expand_composites=True):
            tensor = tf.convert_to_tensor(leaf)
            shape = tensor.shape
            if not shape.is_fully_defined():
                self._slots.append(_Slot(len(vectors), 0, 0, None))
                vectors.append([tensor])
                lengths.append(0)
                continue
            if tensor.dtype not in of_dtype:
                of_dtype[tensor.dtype] = len(vectors)
                vectors.append([])
                lengths.append(0)
            index = of_dtype[tensor.dtype]
            start = lengths[index]
            lengths[index] += int(np.prod(tuple(shape), dtype=np.int64))
            self._slots.append(_Slot(index, start, lengths[index], tuple(shape)))
            vectors[index].append(tf.reshape(tensor, [-1]))
        return [v[0] if len(v) == 1 else tf.concat(v, 0) for v in vectors]

    def unpack(self, vectors: Sequence[Any]) -> Any:
        """The packed structure, with numpy values."""
        arrays = [v.numpy() if hasattr(v, "numpy") else v for v in vectors]
        leaves: list[Any] = []
        for vector, start, stop, shape in self._slots:
            array = arrays[vector]
            if shape == ():
                array = array.flat[start]  # a numpy scalar, as a session gives
            elif shape is not None:
                array = array.reshape(-1)[start:stop].reshape(shape)
            leaves.append(array)
        return tf.nest.pack_sequence_as(self._structure, leaves, expand_composites=True)


def _wait(remote: Any) -> None:
    """Waits until the coordinator has copied a value, or knows that there is none."""
    # `get` before that would copy the value itself. The copy fails if the worker dies,
    # although the coordinator gives the step to another worker.
    is_ready = lambda: compat.remote_value_is_ready(remote)  # noqa: E731
    if not PREEMPTED.wait_until(is_ready, _POLL_SECS):
        raise tf.errors.OutOfRangeError(None, None, "The step was given up.")


class StepValue:
    """One scheduled step and, as soon as they have arrived, its values."""

    def __init__(self, remote: Any, layout: Layout, steps: int) -> None:
        self._remote = remote
        self._layout = layout
        self.steps = steps
        self.is_counted = False  # whether the global step counts it
        self.is_lost = False  # whether it was given up, or its data had ended
        self._loaded: tuple[Any, dict[str, Any]] | None = None

    @property
    def is_loaded(self) -> bool:
        return self._loaded is not None

    @property
    def is_ready(self) -> bool:
        return (
            self.is_lost or self.is_loaded or compat.remote_value_is_ready(self._remote)
        )

    def load(self) -> tuple[Any, dict[str, Any]]:
        """Waits for the step: `(logs, {key of a tensor of the step: value})`."""
        if self._loaded is None:
            _wait(self._remote)
            logs, taps = self._layout.unpack(self._remote.get())
            self._loaded = logs, taps
            self._remote = None
        return self._loaded


class StepLogs(tf.distribute.experimental.coordinator.RemoteValue):  # type: ignore[misc]
    """The logs of a scheduled step, as Keras expects them from the coordinator."""

    def __init__(self, value: StepValue, before_fetch: Callable[[StepLogs], Any]):
        self.value = value
        self._before_fetch = before_fetch
        self._python: Any = None

    @property
    def is_ready(self) -> bool:
        return self.value.is_ready

    def python(self) -> Any:
        if self._python is None:
            self._python = to_python(self.value.load()[0])
        return self._python

    def fetch(self) -> Any:
        before = self._before_fetch(self)
        return self.value.load()[0] if before is None else before

    def get(self) -> Any:
        return tf.nest.map_structure(tf.convert_to_tensor, self.fetch())


class ForeignLogs:
    """A `RemoteValue` of Keras's own function, such as that of a validation batch."""

    def __init__(self, remote: Any) -> None:
        self.remote = remote
        self._python: Any = None

    @property
    def is_ready(self) -> bool:
        return compat.remote_value_is_ready(self.remote)

    def python(self) -> Any:
        if self._python is None:
            _wait(self.remote)
            self._python = to_python(self.remote.fetch())
        return self._python


def to_python(logs: Any) -> Any:
    """Logs as Keras gives them to callbacks: scalars as Python numbers."""
    if isinstance(logs, Mapping):
        return {key: to_python(value) for key, value in logs.items()}
    if isinstance(logs, tf.Tensor):
        logs = logs.numpy()
    if isinstance(logs, np.generic) or (
        isinstance(logs, np.ndarray) and logs.ndim == 0
    ):
        return logs.item()
    return logs
