"""The files that callbacks will write, checked before training."""

from __future__ import annotations

import os
from typing import NamedTuple, Protocol, runtime_checkable

from hookbridge import errors
from hookbridge.adapters.guests import keras_rows, kinds
from hookbridge.ground import arguments
from hookbridge.ground.protocols import Callback, Hook

# Attributes of TensorFlow's hooks.
_FOLDERS_OF_HOOKS = ("_checkpoint_dir", "_output_dir")


class WrittenPath(NamedTuple):
    """A path that a guest will write."""

    path: str
    is_folder: bool


@runtime_checkable
class WritesFolders(Protocol):
    """A callback that tells to which folders it will write, and whether a model."""

    @property
    def saves_whole_model(self) -> bool:
        """Whether it saves the whole model, not only weights."""

    def written_folders(self) -> list[str]:
        """Return the folders to which it will write."""


def written_by_callback(
    callback: Callback, row: keras_rows.KerasRow
) -> list[WrittenPath]:
    """Return the paths that a callback will write.

    Args:
      callback: a ready-made callback tells its paths itself.
      row: that of its Keras class, which says where another one has its path.
    """
    if isinstance(callback, WritesFolders):
        folders = callback.written_folders()
        return [WrittenPath(folder, is_folder=True) for folder in folders]
    if not row.writes:
        return []
    return [WrittenPath(str(getattr(callback, row.writes)), row.writes_folder)]


def written_by_hook(hook: Hook) -> list[WrittenPath]:
    """Return the directories to which a hook will write."""
    folders = (getattr(hook, attribute, None) for attribute in _FOLDERS_OF_HOOKS)
    return [
        WrittenPath(os.fspath(folder), is_folder=True)
        for folder in folders
        if isinstance(folder, (str, os.PathLike))
    ]


def check_writable(guest: object, path: str, *, is_folder: bool) -> None:
    """Refuse a path that cannot be written; leave nothing behind."""
    folder = path if is_folder else os.path.dirname(path)
    appends = keras_rows.row(kinds.name_of(guest)).makes_folder == "never"
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
