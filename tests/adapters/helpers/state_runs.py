"""Helpers for tests of the state that callbacks leave in files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from callback_recorder import callback_of

from hookbridge.adapters.state.files import StateFiles
from hookbridge.adapters.state.parts import Part


def patient(keras: Any) -> Any:
    return keras.callbacks.EarlyStopping("loss", min_delta=1e6, patience=50)


def options(folder: Path, every: int = 1) -> dict[str, Any]:
    saves = {"checkpoint_dir": str(folder), "save_checkpoint_steps": every}
    return {"session_options": saves, "validate": False, "epochs": 20}


def document(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    return found


class Killed(BaseException):
    """Ends a run as SIGKILL would: no `end` of any hook is called."""


def state_of(*callbacks: Any, task: str = "") -> StateFiles:
    """The state of callbacks whose training has begun."""
    state = StateFiles(task)
    part_of(state, callbacks).begin()
    return state


def part_of(state: StateFiles, callbacks: Sequence[Any]) -> Part:
    """Adds callbacks, whose training has not begun."""
    state.parts.append(Part(callbacks, lambda: None))
    return state.parts[-1]


def save(state: StateFiles, prefix: str, step: int) -> None:
    """Writes the present state beside a checkpoint."""
    state.writer(prefix, step, in_step=False)()


def restored(callback: Any, prefix: str, *, task: str = "") -> bool:
    """Restores a callback; returns whether there was a usable state."""
    return _restore(state_of(callback, task=task), prefix)


def _restore(state: StateFiles, prefix: str) -> bool:
    found = state.read(prefix)
    if found is not None:
        state.parts[0].restore(found)
    return found is not None


def _add_one(callback: Any, epoch: int, logs: Any = None) -> None:
    callback.kept = callback.kept + 1


class Holds:
    """One process's callback, which holds an array, and its `StateFiles`."""

    def __init__(self, keras: Any, task: str = "") -> None:
        self.callback: Any = callback_of(keras, on_epoch_end=_add_one)
        self.callback.kept = np.zeros(3)
        self.state = state_of(self.callback, task=task)

    def save(self, prefix: str, step: int, value: float) -> None:
        self.callback.kept = np.full(3, value)
        save(self.state, prefix, step)

    def restore(self, prefix: str) -> bool:
        """Restores the callback; returns whether there was a usable state."""
        return _restore(self.state, prefix)
