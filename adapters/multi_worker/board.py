"""Notes that the processes of one training leave for each other."""

from __future__ import annotations

import time

import tensorflow as tf

from hookbridge import compat

# A waiting process looks around this often, for example for a KeyboardInterrupt.
_LOOK_SECS = 1.0


class Board:
    """The coordination service's keys of one loop; each note is written once."""

    def __init__(self, loop: str) -> None:
        self._context = compat.private("eager_context")()
        self._loop = loop

    def write(self, key: str, note: str) -> bool:
        """Writes a note; returns whether it is the first one of this key."""
        try:
            self._context.set_config_key_value(f"{self._loop}/{key}", note)
        except tf.errors.AlreadyExistsError:
            return False
        return True

    def read(self, key: str, limit_secs: float | None = None) -> str | None:
        """Waits for a note; None if there is none within the limit."""
        end = None if limit_secs is None else time.monotonic() + limit_secs
        while True:
            try:
                return str(
                    self._context.get_config_key_value(
                        f"{self._loop}/{key}", int(_LOOK_SECS * 1000)
                    )
                )
            except tf.errors.DeadlineExceededError:
                if end is not None and time.monotonic() >= end:
                    return None
