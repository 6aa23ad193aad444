"""The results of a scheduled step, joined into few tensors.

Each output of a scheduled function costs the coordinator a call to the worker. So a
step joins its results (the logs of Keras and the tensors that hooks want) into one
vector for each dtype, and the coordinator splits the vectors again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from hookbridge.adapters.parameter_server.exit import PREEMPTED
from hookbridge.ground import compat

_POLL_SECS = 3e-4


class Layout:
    """How the outputs of one step are joined; filled while the step is traced."""

    def __init__(self) -> None:
        self._structure: Any = None
        self._shapes: list[Any] = []
        self._groups: list[list[int]] = []  # the numbers of the outputs in each vector

    def pack(self, outputs: object) -> list[Any]:
        """Join a structure of tensors; called in the function being traced."""
        tensors = [
            tf.convert_to_tensor(output)
            for output in tf.nest.flatten(outputs, expand_composites=True)
        ]
        groups: dict[Any, list[int]] = {}
        for number, tensor in enumerate(tensors):
            is_known = tensor.shape.is_fully_defined()
            groups.setdefault(tensor.dtype if is_known else number, []).append(number)
        self._structure = outputs
        self._shapes = [tensor.shape for tensor in tensors]
        self._groups = list(groups.values())
        return [
            tensors[group[0]]
            if len(group) == 1
            else tf.concat([tf.reshape(tensors[n], [-1]) for n in group], 0)
            for group in self._groups
        ]

    def unpack(self, vectors: Sequence[Any]) -> Any:
        """Return the packed structure, with numpy values."""
        leaves: list[Any] = [None] * len(self._shapes)
        for group, vector in zip(self._groups, vectors, strict=True):
            array = vector.numpy() if hasattr(vector, "numpy") else vector
            if len(group) == 1:
                leaves[group[0]] = array
                continue
            ends = np.cumsum([self._shapes[n].num_elements() for n in group])
            for number, part in zip(group, np.split(array, ends[:-1]), strict=True):
                # A scalar is a numpy scalar, as a session gives.
                leaves[number] = part.reshape(tuple(self._shapes[number]))[()]
        return tf.nest.pack_sequence_as(self._structure, leaves, expand_composites=True)


def _wait(remote: object) -> None:
    """Wait until the coordinator has copied a value, or knows that there is none."""

    def is_ready() -> bool:
        return bool(compat.remote_value_is_ready(remote))

    # `get` before that would copy the value itself. The copy fails if the worker dies,
    # although the coordinator gives the step to another worker.
    if not PREEMPTED.wait_until(is_ready, _POLL_SECS):
        raise tf.errors.OutOfRangeError(None, None, "The step was abandoned.")


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
        """Wait for the step: `(logs, {key of a tensor of the step: value})`."""
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


def to_python(logs: object) -> Any:
    """Return logs as Keras gives them to callbacks: scalars as Python numbers."""
    if isinstance(logs, Mapping):
        return {key: to_python(value) for key, value in logs.items()}
    if isinstance(logs, tf.Tensor):
        logs = logs.numpy()
    if isinstance(logs, np.generic) or (
        isinstance(logs, np.ndarray) and logs.ndim == 0
    ):
        return logs.item()
    return logs
