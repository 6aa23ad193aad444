"""A session loop whose callback acts at each epoch end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
from callback_loops import build, feeds

import hookbridge as hb

v1 = tf.compat.v1


def run(
    keras: Any,
    body: Callable[[Any, int], None],
    *,
    rate: Any = 0.1,
    optimizer: Any = None,
    epochs: int = 2,
    **options: Any,
) -> list[float]:
    """Calls `body(model, epoch)` at each epoch end; returns the rates of the steps."""
    seen: list[float] = []

    class Body(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            body(self.model, epoch)

    with tf.Graph().as_default():
        net = build(rate() if callable(rate) else rate, optimizer)
        gradient = v1.gradients(net.loss, [net.kernel])[0]
        hooks = hb.as_hooks(Body(), steps_per_epoch=1, epochs=epochs, **options)
        with v1.train.MonitoredTrainingSession(hooks=hooks) as session:
            while not session.should_stop():
                before, slope = session.run([net.kernel, gradient], feeds(net, 0))
                session.run(net.train_op, feeds(net, 0))
                if not session.should_stop():
                    after = session.run(net.kernel)
                    seen.append(float(np.mean((before - after) / slope)))
    return seen
