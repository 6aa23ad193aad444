"""Backups of `BackupAndRestore`, and the state of callbacks that belongs to each.

Keras backs up weights and the epoch. Beside that, hookbridge writes the state of all
callbacks, at the step of the backup: so a job goes on from its backup as it does from a
checkpoint, and a job that has both goes on from the newer one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import tensorflow as tf
from absl import logging

from hookbridge.adapters.guests.guest_record import record_of
from hookbridge.adapters.state.files import StateFiles

# What Keras 3, and Keras 2, write last of a backup, in its folder.
_LAST_FILES = ("training_metadata.json", "chief/checkpoint")


class Backup:
    """The backup of one callback; it may not exist yet."""

    def __init__(self, folder: str, *, is_in_epoch: bool = True) -> None:
        self._folder = folder
        self.is_in_epoch = is_in_epoch  # whether it is written within epochs too
        self._seen = self._last_file()

    def _last_file(self) -> tuple[str, str] | None:
        """Return the file that was written last, and its text: the epoch."""
        for name in _LAST_FILES:
            path = os.path.join(self._folder, name)
            if tf.io.gfile.exists(path):
                with tf.io.gfile.GFile(path) as file:
                    return path, file.read()
        return None

    @property
    def exists(self) -> bool:
        return self._last_file() is not None

    @property
    def prefix(self) -> str:
        """Where the state is, as for a checkpoint."""
        file = self._last_file()
        folder = self._folder if file is None else os.path.dirname(file[0])
        return os.path.join(folder, "backup")

    def is_new(self) -> bool:
        """Return whether it was written since the last look."""
        before, self._seen = self._seen, self._last_file()
        return self._seen is not None and self._seen != before

    def step_in(self, files: StateFiles) -> int | None:
        """Return the step of its state, or None.

        The state of an earlier backup does not count.
        """
        file, path = self._last_file(), files.path_of(self.prefix)
        if file is None or not tf.io.gfile.exists(path):
            return None
        written, state_written = (
            tf.io.gfile.stat(p).mtime_nsec for p in (file[0], path)
        )
        return files.step_of(self.prefix) if written <= state_written else None

    def set_aside(self) -> str:
        """Move it to where its callback does not find it; return that folder."""
        aside = f"{os.path.normpath(self._folder)}.older"
        if tf.io.gfile.exists(aside):
            tf.io.gfile.rmtree(aside)
        tf.io.gfile.rename(self._folder, aside)
        return aside


def backups_of(callbacks: Iterable[Any]) -> list[Backup]:
    """Return the backups of the `BackupAndRestore`s among callbacks."""
    guests = [record_of(callback) for callback in callbacks]
    return [
        Backup(str(guest.item.backup_dir), is_in_epoch=guest.item.save_freq != "epoch")
        for guest in guests
        if guest.keras_row.is_backup
    ]


def newest(
    checkpoint: str | None, step: int, backups: Iterable[Backup], files: StateFiles
) -> tuple[Backup | None, int]:
    """Return the backup from which a job goes on, and the step at which it does.

    It is asked before `on_train_begin`, in which callbacks restore their backups.

    Args:
      checkpoint: the path of the one that the job was restored from, if any.
      step: its step, or the one at which the job begins.
      backups: those of the callbacks.
      files: reads the states beside them.

    Returns:
      The backup; None if the job goes on from the checkpoint, or if no backup has a
      state of callbacks: these start over then.
    """
    if checkpoint is not None:
        return _newer_than(checkpoint, step, backups, files)
    candidates: list[tuple[Backup | None, int]] = []
    for backup in backups:
        saved_at = backup.step_in(files)
        if saved_at is not None:
            candidates.append((backup, saved_at))
        elif backup.exists:
            logging.warning(
                "hookbridge: training goes on from the backup %s, which has no state "
                "of callbacks; they start over.",
                backup.prefix,
            )
    return max(candidates, key=lambda pair: pair[1], default=(None, step))


def _newer_than(
    checkpoint: str, step: int, backups: Iterable[Backup], files: StateFiles
) -> tuple[Backup | None, int]:
    """Move older backups aside, so that the newest of all is what a job goes on from.

    Only one of them is restored, with everything: no callback finds an older one. Of
    one step is the newest that which has all its events.
    """
    newer: Backup | None = None
    lacks_events = files.lacks_events(checkpoint)
    for backup in backups:
        if not backup.exists:
            continue
        saved_at = backup.step_in(files)
        if saved_at is not None and (
            saved_at > step or (saved_at == step and lacks_events)
        ):
            logging.warning(
                "hookbridge: training goes on from the backup %s, at step %d, with the "
                "state of callbacks there: the checkpoint %s %s.",
                backup.prefix,
                saved_at,
                checkpoint,
                "is older" if saved_at > step else "lacks the end of that step",
            )
            newer, step, lacks_events = backup, saved_at, False
        else:
            logging.warning(
                "hookbridge: training goes on from the checkpoint %s, at step %d: the "
                "backup, which is %s, has been moved to %s.",
                checkpoint,
                step,
                "without a state of callbacks"
                if saved_at is None
                else f"of step {saved_at}",
                backup.set_aside(),
            )
    return newer, step
