"""Threads of Estimator that feed queues; the process's end waits for them."""

from __future__ import annotations

import functools
import importlib
import threading
from typing import Any

from hookbridge.ground import patching
from hookbridge.ground.processes.exit_threads import await_at_end
from hookbridge.ground.protocols import Session

_MODULE = "tensorflow_estimator.python.estimator.inputs.queues.feeding_queue_runner"


@functools.cache
def end_before_the_process() -> None:
    """Make the process wait for these threads at its end, from now on.

    `numpy_input_fn` and `pandas_input_fn` start them, and other than TensorFlow's own
    queue runner do not register them with the coordinator. So a session closes without
    them. One that comes back from TensorFlow while the interpreter ends would abort a
    process that has done its work (docs/decisions/0006).
    """
    runner: Any = vars(importlib.import_module(_MODULE))["_FeedingQueueRunner"]
    plain = runner.create_threads

    @functools.wraps(plain)
    def create_threads(
        self: Any, sess: Session, coord: Any = None, *args: Any, **named: Any
    ) -> list[threading.Thread]:
        threads: list[threading.Thread] = plain(self, sess, coord, *args, **named)
        if coord is not None:
            for thread in threads:
                await_at_end(thread, coord.request_stop)
        return threads

    patching.Patches(runner, {"create_threads": create_threads}).install()
