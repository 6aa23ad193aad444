"""What comes back from a scheduled step, in one message.

Each output of a scheduled function costs the coordinator a call to the worker, so
all that a step returns (the logs of Keras and the tensors that hooks want) is
joined into one vector per dtype and taken apart on the coordinator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from hookbridge import compat


class _Slot(NamedTuple):
    """Where one output is: which vector, its offset there, its shape."""

    vector: int
    start: int
    shape: tuple[int, ...] | None


class Layout:
    """How the outputs of one traced step were joined; filled while it is traced."""

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
                self._slots.append(_Slot(len(vectors), 0, None))
                vectors.append([tensor])
                lengths.append(0)
                continue
            if tensor.dtype not in of_dtype:
                of_dtype[tensor.dtype] = len(vectors)
                vectors.append([])
                lengths.append(0)
            index = of_dtype[tensor.dtype]
            self._slots.append(_Slot(index, lengths[index], tuple(shape)))
            vectors[index].append(tf.reshape(tensor, [-1]))
            lengths[index] += int(np.prod(tuple(shape), dtype=np.int64))
        return [v[0] if len(v) == 1 else tf.concat(v, 0) for v in vectors]

    def unpack(self, vectors: Sequence[Any]) -> Any:
        """The structure that was packed, of numpy values."""
        arrays = [v.numpy() if hasattr(v, "numpy") else v for v in vectors]
        leaves: list[Any] = []
        for slot in self._slots:
            array = arrays[slot.vector]
            if slot.shape is not None:
                size = int(np.prod(slot.shape, dtype=np.int64))
                array = np.ravel(array)[slot.start : slot.start + size]
                array = array.reshape(slot.shape)[()]
            leaves.append(array)
        return tf.nest.pack_sequence_as(self._structure, leaves, expand_composites=True)


class StepValue:
    """One scheduled step: its values, as soon as they are there.

    Args:
      remote: what the coordinator returned.
      layout: how to take it apart.
      steps: how many training steps it makes.
    """

    def __init__(self, remote: Any, layout: Layout, steps: int) -> None:
        self._remote = remote
        self._layout = layout
        self.steps = steps
        self.global_step = 0  # right after this step; set when it is scheduled
        self._loaded: tuple[Any, dict[str, Any]] | None = None

    @property
    def is_ready(self) -> bool:
        """Whether `load` would return, or raise, at once."""
        return self._loaded is not None or compat.remote_value_is_ready(self._remote)

    def load(self) -> tuple[Any, dict[str, Any]]:
        """Waits for the step: `(logs, {key of a tensor of the step: value})`.

        Raises:
          Exception: what the step failed with.
        """
        if self._loaded is None:
            logs, taps = self._layout.unpack(self._remote.get())
            self._loaded = logs, taps
            self._remote = None
        return self._loaded


class StepLogs(tf.distribute.experimental.coordinator.RemoteValue):  # type: ignore[misc]
    """The logs of a scheduled step, as Keras expects them from the coordinator.

    Args:
      value: the step.
      before_fetch: called before somebody gets the logs.
    """

    def __init__(self, value: StepValue, before_fetch: Callable[[StepLogs], Any]):
        self.value = value
        self._before_fetch = before_fetch
        self._python: Any = None

    @property
    def is_ready(self) -> bool:
        """Whether the step's values are there."""
        return self.value.is_ready

    def python(self) -> Any:
        """The logs as a callback gets them: scalars as Python numbers."""
        if self._python is None:
            self._python = to_python(self.value.load()[0])
        return self._python

    def fetch(self) -> Any:
        """The logs as numpy values; waits for the step."""
        before = self._before_fetch(self)
        return self.value.load()[0] if before is None else before

    def get(self) -> Any:
        """The logs as tensors; waits for the step."""
        return tf.nest.map_structure(tf.convert_to_tensor, self.fetch())


class ForeignLogs:
    """A `RemoteValue` of Keras's own function, such as that of a validation batch."""

    def __init__(self, remote: Any) -> None:
        self.remote = remote
        self._python: Any = None

    @property
    def is_ready(self) -> bool:
        """Whether the batch's values are there."""
        return compat.remote_value_is_ready(self.remote)

    def python(self) -> Any:
        """The logs as a callback gets them: scalars as Python numbers."""
        if self._python is None:
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
