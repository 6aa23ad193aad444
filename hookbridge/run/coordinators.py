"""Programs that coordinate parameter servers end with their threads."""

from __future__ import annotations

import functools
from typing import Any

import tensorflow as tf

from hookbridge import patching
from hookbridge.adapters.parameter_server.exit import end_with_threads


def follow() -> None:
    """From now on the process waits for the threads of its coordinators at its end.

    TensorFlow leaves them running, which now and then aborts a process that has done
    its work (docs/decisions/0006).
    """
    kind = tf.distribute.experimental.ParameterServerStrategy
    plain = kind.__init__

    @functools.wraps(plain)
    def init(self: Any, *args: Any, **named: Any) -> None:
        plain(self, *args, **named)
        end_with_threads(self)

    patching.InstanceMethods(kind, {"__init__": init}).install()
