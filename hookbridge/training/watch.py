"""What one process of a training has done: whether it made steps, and why it ended."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from hookbridge import exit_codes
from hookbridge.loops.tasks.signals import on_sigterm


class TrainingWatch(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
    """A hook that counts the steps, in every loop."""

    def __init__(self) -> None:
        self.steps = 0
        self.preempted = False

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Counts a step, and ends the training after it if SIGTERM came."""
        self.steps += 1
        if self.preempted:
            run_context.request_stop()

    @contextlib.contextmanager
    def saving_at_sigterm(self) -> Iterator[None]:
        """Ends the training inside at SIGTERM as a stop does, with a checkpoint."""
        with on_sigterm(self._preempt):
            yield
        if self.preempted:
            raise SystemExit(exit_codes.PREEMPTED)

    def _preempt(self) -> None:
        self.preempted = True
