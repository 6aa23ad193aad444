"""A loop that fetches its data with one `run` and trains with another.

    python examples/fetch_then_train.py

A plain hook sees every `run` and takes the fetches of data for steps. A callback under
`hb.as_hooks` hears of training steps only.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

import hookbridge as hb

v1 = tf.compat.v1
DATA = Path(__file__).parent / "data" / "digits.csv"
STEPS = 20


class PlainCounter(v1.train.SessionRunHook):  # type: ignore[misc]
    """Counts runs, as hooks do."""

    runs = 0

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self.runs += 1


class Counter(tf.keras.callbacks.Callback):  # type: ignore[misc]
    """Counts training steps."""

    steps = 0

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.steps += 1


def main() -> None:
    """Trains a linear classifier on batches that the program fetches itself."""
    rows = np.loadtxt(DATA, delimiter=",", skiprows=1, dtype=np.float32)
    plain, counter = PlainCounter(), Counter()
    with tf.Graph().as_default():
        data = tf.data.Dataset.from_tensor_slices((rows[:, :-1] / 16, rows[:, -1]))
        batch = v1.data.make_one_shot_iterator(data.repeat().batch(32)).get_next()
        x = v1.placeholder(tf.float32, [None, 64])
        y = v1.placeholder(tf.int32, [None])
        logits = tf.matmul(x, v1.get_variable("kernel", [64, 10]))
        entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits)
        loss = tf.reduce_mean(entropy, name="loss")
        step = v1.train.get_or_create_global_step()
        train_op = v1.train.GradientDescentOptimizer(0.1).minimize(loss, step)
        hooks = [plain, *hb.as_hooks(counter)]
        with v1.train.MonitoredTrainingSession(hooks=hooks) as session:
            for _ in range(STEPS):
                pixels, labels = session.run(batch)  # no step
                session.run(train_op, feed_dict={x: pixels, y: labels})
    print(f"plain hook: {plain.runs} runs; callback: {counter.steps} steps")


if __name__ == "__main__":
    main()
