"""The files that callbacks will write, checked before training."""

from __future__ import annotations

import os
from typing import Any

from hookbridge import arguments, errors
from hookbridge.adapters.guests import kinds

# The callbacks that save models.
SAVE_MODELS = ("ModelCheckpoint", "SidecarEvaluatorModelExport")


def written_paths(callback: Any, name: str) -> list[tuple[str, bool]]:
    """The paths that a stock callback will write: `(path, is a directory)`."""
    if name in SAVE_MODELS:
        return [(str(callback.filepath), False)]
    if name == "TensorBoard":
        return [(str(callback.log_dir), True)]
    if name in ("BackupAndRestore", "BackupAndRestoreExperimental"):
        return [(str(callback.backup_dir), True)]
    if name == "CSVLogger":
        path = str(callback.filename)
        folder = os.path.dirname(path) or "."
        if "://" not in path and not os.path.isdir(folder):
            raise errors.UnwritableError(
                f"`CSVLogger` will write `{path}`, but the directory `{folder}` "
                "does not exist and the callback does not make it. Make it first."
            )
        return [(path, False)]
    return []


def check_writable(callback: Any, path: str, *, is_folder: bool) -> None:
    """Refuses a path that cannot be written; leaves nothing behind."""
    folder = path if is_folder else os.path.dirname(path)
    if not is_folder and os.path.isdir(path) and kinds.name_of(callback) == "CSVLogger":
        raise errors.UnwritableError(
            f"`CSVLogger` will write the file `{path}`, which is a directory. Give "
            "the path of a file."
        )
    problem = arguments.not_writable(folder.split("{")[0] or ".")
    if problem is not None:
        raise errors.UnwritableError(
            f"`{kinds.name_of(callback)}` will write `{path}`, but `{problem[0]}` "
            f"cannot be written: {problem[1]}. Give a path in a directory that can be "
            "written, or change its permissions."
        )
