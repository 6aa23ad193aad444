"""The errors of a step that mean something to a loop, whoever raises them."""

from __future__ import annotations

import tensorflow as tf

# The data has ended: the loop ends as on a clean finish.
END_OF_DATA: tuple[type[Exception], ...] = (StopIteration, tf.errors.OutOfRangeError)
# A task of the cluster was lost: the loop makes a new session and goes on.
LOST_TASK: tuple[type[Exception], ...] = (
    tf.errors.AbortedError,
    tf.errors.UnavailableError,
)
