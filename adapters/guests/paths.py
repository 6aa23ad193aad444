"""The files that callbacks will write, checked before training."""

from __future__ import annotations

import os
from typing import Protocol, runtime_checkable

from hookbridge import errors
from hookbridge.adapters.guests import kinds, stock
from hookbridge.ground import arguments
from hookbridge.ground.protocols import Callback, Hook

# Attributes of TensorFlow's hooks.
_FOLDERS_OF_HOOKS = ("_checkpoint_dir", "_output_dir")


@runtime_checkable
class WritesFolders(Protocol):
    """A callback that tells to which folders it will write, and whether a model."""

    @property
    def saves_whole_model(self) -> bool:
        """Whether it saves the whole model, not only weights."""

    def written_folders(self) -> list[str]:
        """Return the folders to which it will write."""


def written_by_callback(
    callback: Callback, row: stock.StockCallback
) -> list[tuple[str, bool]]:
    """Return the paths that a callback will write: `(path, is a directory)`.

    Those of a stock class, or of a ready-made callback, which tells them.
    """
    if isinstance(callback, WritesFolders):
        return [(folder, True) for folder in callback.written_folders()]
    if not row.writes:
        return []
    return [(str(getattr(callback, row.writes)), row.writes_folder)]


def written_by_hook(hook: Hook) -> list[tuple[str, bool]]:
    """Return the directories to which a hook will write, as `written_by_callback`."""
    folders = (getattr(hook, attribute, None) for attribute in _FOLDERS_OF_HOOKS)
    return [(os.fspath(f), True) for f in folders if isinstance(f, (str, os.PathLike))]


def check_writable(guest: object, path: str, *, is_folder: bool) -> None:
    """Refuse a path that cannot be written; leave nothing behind."""
    folder = path if is_folder else os.path.dirname(path)
    appends = stock.row(kinds.name_of(guest)).makes_folder == "never"
    if not is_folder and appends and os.path.isdir(path):
        raise errors.UnwritableError(
            f"`{kinds.name_of(guest)}` will write the file `{path}`, which is a "
            "directory. Give the path of a file."
        )
    problem = arguments.not_writable(folder.split("{")[0] or ".")
    if problem is not None:
        raise errors.UnwritableError(
            f"`{kinds.name_of(guest)}` will write `{path}`, but `{problem[0]}` "
            f"cannot be written: {problem[1]}. Give a path in a directory that can be "
            "written, or change its permissions."
        )
