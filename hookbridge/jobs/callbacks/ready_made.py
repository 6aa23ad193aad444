"""What the ready-made callbacks have in common."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from hookbridge import errors
from hookbridge.adapters.guests import any_flavour
from hookbridge.adapters.guests.roles import Role, set_role
from hookbridge.adapters.keras_model.optimizers import steps_counted
from hookbridge.ground import arguments
from hookbridge.ground.protocols import Logs


class ReadyMade(any_flavour.AnyFlavour):
    """Base class: a callback of every Keras flavour with a role."""

    def __init__(self, role: Role) -> None:
        set_role(self, role)

    @property
    def saves_whole_model(self) -> bool:
        """Return whether it needs a Keras model, which it saves."""
        return False

    def global_step(self) -> int:
        """Return how many training steps the model has had."""
        return steps_counted(self.model)

    def written_folders(self) -> list[str]:
        """Return the folders that are known to be written before training."""
        return []

    def path(self, value: str | None, entry: str, argument: str) -> str:
        """Return a path that the user gave, or else the entry of `params`."""
        result = value or (self.params or {}).get(entry)
        if not result:
            raise errors.InvalidArgumentError(
                f"`{type(self).__name__}` has no `{argument}`, and `params` has no "
                f"`{entry}`; expected one of them. Write "
                f"`{type(self).__name__}({argument}=...)`."
            )
        return os.fspath(result)


class OfSavedModel(ReadyMade):
    """Base class: a callback of the chief that is about the folder of a SavedModel.

    Args:
      path: the folder; None takes `params["saved_model_path"]`.
    """

    def __init__(self, path: str | None) -> None:
        super().__init__("chief")
        self._path = None if path is None else arguments.path("path", path)

    def on_train_begin(self, logs: Logs = None) -> None:
        self.folder()

    def folder(self) -> str:
        """Return the folder; refuse to train without one."""
        return self.path(self._path, "saved_model_path", "path").rstrip("/")


def metrics_of(logs: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the metrics of an evaluation: `logs`, or their "metrics"."""
    logs = logs or {}
    inner = logs.get("metrics")
    return dict(inner if isinstance(inner, Mapping) else logs)
