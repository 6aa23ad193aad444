"""The message to the user when a run has failed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from hookbridge.data.bad_rows import tidied
from hookbridge.training import user_file
from hookbridge.training.part import Part

_FULL = ("No space left on device", "File too large", "Disk quota exceeded")


class Failures:
    """Finds out why a run has failed."""

    def __init__(self, part: Part) -> None:
        self._part = part

    def told(self, error: BaseException, mode: str, command: str) -> str:
        """The message about an error; names the row, the disk, or the file's line."""
        prefix = f"hookbridge: {command}: "
        settings = self._part.settings
        text = str(getattr(error, "message", None) or error)
        if any(sign in text for sign in _FULL):
            return (
                f"{prefix}--model_dir={settings.model_dir} cannot be written: "
                f"no space is left there. {self._last_checkpoint()}"
            )
        if type(error).__name__ == "NanLossDuringTrainingError":
            return (
                f"{prefix}{self._part.definition.where(self._loss_name())} became NaN. "
                f"{self._last_checkpoint()} Lower the learning rate, or look for "
                "logarithms and divisions of 0."
            )
        if isinstance(error, tf.errors.OpError):
            row = self._bad_row(mode)
            if row is not None:
                header = row.number == 1 and not settings.header_lines
                way = "If it is a header, --header_lines=1 leaves it out; " * header
                return f"{prefix}{row} {way}--bad_rows=skip goes on without such rows."
            frames = user_file.told(settings.model_def, error, command)
            lines = frames.splitlines()
            at = next((i for i, x in enumerate(lines) if x.startswith(prefix)), 0)
            name = type(error).__name__
            return "\n".join([*lines[:at], f"{prefix}{name}: {tidied(text)}"])
        return user_file.told(settings.model_def, error, command)

    def _bad_row(self, mode: str) -> Any:
        """The first row that cannot be read, or whose loss fails."""
        found = self._part.inputs.bad_row(mode)
        if found is None and mode != "infer" and self._part.definition.is_keras:
            found = self._part.inputs.bad_row(mode, self._loss_of(mode))
        return found

    def _loss_of(self, mode: str) -> Callable[..., Any]:
        model = self._part.model(self._part.inputs.function(mode)())

        def loss(features: Any, labels: Any) -> Any:
            return self._part.definition.loss(labels, model(features))

        return loss

    def _loss_name(self) -> str:
        return "loss" if self._part.definition.is_keras else "model_fn"

    def _last_checkpoint(self) -> str:
        path = self._part.checkpoint()
        return f"The last whole checkpoint is {path}." if path else "No checkpoint yet."
