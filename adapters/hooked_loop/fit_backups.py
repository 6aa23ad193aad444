"""Backups of `BackupAndRestore` in a `fit` that saves checkpoints too."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hookbridge.adapters.state import backups
from hookbridge.adapters.state.backups import Backup
from hookbridge.adapters.state.files import StateFiles


class FitBackups:
    """The backups of the callbacks of a `fit`, each with their state beside it.

    A `fit` whose model was restored from a checkpoint goes on from the newer one of
    checkpoint and backup. One whose model was not goes on from its backup.
    """

    def __init__(self, callbacks: Iterable[Any] = ()) -> None:
        self._backups = backups.backups_of(callbacks)

    def choose(self, checkpoint: str, step: int, files: StateFiles) -> None:
        """Set older backups aside, before their callbacks restore them."""
        backups.choose_newest(checkpoint, step, self._backups, files)

    def restored(self, files: StateFiles) -> str | None:
        """Return where the state of a restored backup is, if any."""
        for backup in self._backups:
            if backup.exists and backup.step_in(files) is not None:
                return backup.prefix
            if backup.exists:
                backups.warn_without_state(backup)
        return None

    def new(self, *, in_epoch: bool) -> list[Backup]:
        """Return those that were written since the last call."""
        every = [b for b in self._backups if b.is_in_epoch or not in_epoch]
        return [backup for backup in every if backup.is_new()]
