"""The checkpoints that the chief writes, as a worker sees them."""

from __future__ import annotations

import os
from typing import Any

import tensorflow as tf


class WorkerCheckpoints:
    """Follows the directory that the chief saves to.

    Each look costs one `stat` of a file. A remote directory is not looked at in each
    step: `new` finds nothing there, `newest` does.
    """

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._file = os.path.join(directory, "checkpoint")
        self._seen: Any = self._stamp()

    def newest(self) -> str | None:
        """Path of the newest checkpoint without suffix, or None."""
        found: str | None = tf.train.latest_checkpoint(self._directory)
        return found

    def new(self) -> str | None:
        """Path of the newest checkpoint if it came since the last look, or None."""
        stamp = self._stamp()
        if stamp == self._seen:
            return None
        self._seen = stamp
        return self.newest()

    def _stamp(self) -> Any:
        if "://" in self._directory:
            return None
        try:
            found = os.stat(self._file)
        except OSError:
            return None
        return found.st_mtime_ns, found.st_ino
