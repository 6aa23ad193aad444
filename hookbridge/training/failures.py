"""The message to the user when a run has failed."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from hookbridge.data.bad_rows import tidied
from hookbridge.training import user_file
from hookbridge.training.definition import PREDICT
from hookbridge.training.part import Part

_FULL = ("No space left on device", "File too large", "Disk quota exceeded")


def told(part: Part, error: BaseException, mode: str, command: str) -> str:
    """The message about an error; names the row, the disk, or the file's line."""
    prefix, file = f"hookbridge: {command}: ", part.settings.model_def
    text = str(getattr(error, "message", None) or error)
    path = tf.train.latest_checkpoint(part.settings.model_dir)
    saved = f"The last whole checkpoint is {path}." if path else "No checkpoint yet."
    if any(sign in text for sign in _FULL):
        return (
            f"{prefix}--model_dir={part.settings.model_dir} cannot be written: "
            f"no space is left there. {saved}"
        )
    if type(error).__name__ == "NanLossDuringTrainingError":
        loss = "loss" if part.definition.is_keras else "model_fn"
        return (
            f"{prefix}{part.definition.where(loss)} became NaN. {saved} Lower the "
            "learning rate, or look for logarithms and divisions of 0."
        )
    lines = user_file.told(file, error, command).splitlines()
    if isinstance(error, tf.errors.OpError):
        row = _bad_row(part, mode)
        if row is not None:
            header = row.number == 1 and not part.settings.header_lines
            way = "If it is a header, --header_lines=1 leaves it out; " * header
            return f"{prefix}{row} {way}--bad_rows=skip goes on without such rows."
        at = next((i for i, x in enumerate(lines) if x.startswith(prefix)), 0)
        lines[at:] = [f"{prefix}{type(error).__name__}: {tidied(text)}"]
    return "\n".join(lines)


def _bad_row(part: Part, mode: str) -> Any:
    """The first row that cannot be read, or whose loss fails."""
    found = part.inputs.bad_row(mode)
    if found is not None or mode == PREDICT or not part.definition.is_keras:
        return found
    model = part.model(part.inputs.function(mode)())
    return part.inputs.bad_row(
        mode, lambda features, labels: part.definition.loss(labels, model(features))
    )
