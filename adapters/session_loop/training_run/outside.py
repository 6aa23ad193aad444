"""Finds eager variables that guests hold and that a session does not train.

A `tf.train.Checkpoint` of an eager model saves that model, and the session trains the
variables of its graph. All variables of a guest's checkpoints count, and elsewhere in
it those that look like variables of the graph: a guest may hold some of its own.
"""

from __future__ import annotations

import types
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf
from absl import logging

from hookbridge.adapters.guests import kinds
from hookbridge.ground import compat
from hookbridge.ground.protocols import Callback, Variable

_DEPTH = 8
_MOST = 5000  # objects to look at; a guest may hold a data set
_COUNTERS = ("iter", "iteration", "iterations", "global_step")
_CHECKPOINTS = (tf.train.Checkpoint, tf.train.CheckpointManager)
_OF_CHECKPOINT = "save_counter"


class OutsideVariables:
    """Eager variables in callbacks, as training begins, that look like trained ones."""

    def __init__(
        self,
        callbacks: Iterable[Any],
        variables: Iterable[Any],
        follows: Callable[[Any], bool],
    ) -> None:
        trained = [(_last(v.op.name), v.shape) for v in variables]
        # The guest, the place in it (such as ".checkpoint.model"), the variable, and a
        # checksum of its value.
        self._held = [
            (callback, path, variable, _checksum(variable))
            for callback in callbacks
            for path, variable, is_saved in _reachable(callback)
            # This check comes first: to look at a variable that follows the session
            # would count as a use.
            if not follows(variable)
            and _is_eager(variable)
            and (
                (is_saved and _last(variable.name) != _OF_CHECKPOINT)
                or _looks_like(variable, trained)
            )
        ]

    def warn(self, step: int) -> None:
        """Warn once of guests whose variables have not changed by now."""
        said: set[int] = set()
        watched, self._held = self._held, []
        for callback, path, variable, before in watched:
            if id(callback) in said or before != _checksum(variable):
                continue
            said.add(id(callback))
            logging.warning(
                "hookbridge: `%s` holds the eager variable `%s` (`self%s`), which "
                "has not changed up to step %d. A session trains the variables of "
                "its graph, so this callback saves or reads untrained values. Use "
                "`self.model`, which has the session's weights: for example "
                "`tf.train.Checkpoint(model=self.model)`, made in `on_train_begin`.",
                kinds.name_of(callback),
                variable.name,
                path,
                step,
            )


def _last(name: str) -> str:
    return name.rpartition("/")[2].partition(":")[0]


def _is_eager(variable: Variable) -> bool:
    handle = getattr(variable, "handle", None)
    return tf.is_tensor(handle) and not tf.is_symbolic_tensor(handle)


def _looks_like(variable: Variable, trained: Iterable[tuple[str, Any]]) -> bool:
    last_part, shape = _last(variable.name), variable.shape
    if any(last_part == name and shape.is_compatible_with(s) for name, s in trained):
        return True
    return shape.rank == 0 and variable.dtype.is_integer and last_part in _COUNTERS


def _checksum(variable: Variable) -> int:
    with compat.private("eager_mode")():
        return zlib.crc32(variable.numpy().tobytes())


def _reachable(callback: Callback) -> Iterator[tuple[str, Any, bool]]:
    """Yield the variables that an object holds, the nearest first."""
    # With the place of each, and whether it is in a checkpoint of the object's own.
    # The checkpoints of Keras's callbacks hold their own counters.
    is_users = not kinds.keras_class_of(callback)
    todo: list[tuple[str, Any, int, bool]] = [("", callback, 0, False)]
    visited: set[int] = set()
    for path, item, depth, is_saved in todo:
        is_ours = type(item).__module__.partition(".")[0] == "hookbridge"
        # Nothing is read from a live model, not even its class: that would clone it.
        if id(item) in visited or (is_ours and depth) or isinstance(item, type):
            continue
        visited.add(id(item))
        if isinstance(item, tf.Variable):
            yield path, item, is_saved
        elif depth < _DEPTH and len(todo) < _MOST:
            saves = is_saved or (is_users and isinstance(item, _CHECKPOINTS))
            todo += [(path + end, part, depth + 1, saves) for end, part in _parts(item)]


def _parts(item: object) -> list[tuple[str, Any]]:
    """Return what an object holds: the way to each part as written, and the part."""
    if isinstance(
        item, (str, bytes, int, float, types.ModuleType, tf.Tensor, tf.Graph)
    ):
        return []
    if isinstance(item, Mapping):
        return [(f"[{key!r}]", value) for key, value in item.items()]
    if isinstance(item, (Sequence, set, frozenset)):
        return [(f"[{i}]", value) for i, value in enumerate(item)]
    if isinstance(item, types.MethodType):
        return [("", item.__self__)]
    if isinstance(item, types.FunctionType):
        cells = zip(item.__code__.co_freevars, item.__closure__ or (), strict=True)
        full = [(name, cell) for name, cell in cells if cell != types.CellType()]
        return [(f".{name}", cell.cell_contents) for name, cell in full]
    return [(f".{name}", part) for name, part in getattr(item, "__dict__", {}).items()]
