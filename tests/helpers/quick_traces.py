"""Spares tests the second that TensorFlow waits after each trace of a replica.

`Coordinator.join` checks whether the thread of the replica has ended just before the
thread ends, and checks again only a second later. In this way a `fit` with
replicas waits two or three times before its first step.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

JOIN_SECS, LOOK_SECS = 1.0, 0.01


def look_often() -> None:
    """Lets every `tf.train.Coordinator` of this process check again soon."""
    coordinator: Any = tf.train.Coordinator
    wait = coordinator.wait_for_stop

    def wait_for_stop(self: Any, timeout: float | None = None) -> bool:
        return bool(wait(self, LOOK_SECS if timeout == JOIN_SECS else timeout))

    coordinator.wait_for_stop = wait_for_stop
