"""A job for `hookbridge train`: an Estimator's functions and a list of guests.

    hookbridge train examples/digits_job.py --model_dir=runs/job \
        --num_towers=2 --steps_per_epoch=44 --epochs=10

and the same over processes, each with its own share of the data:

    hookbridge cluster --num_workers=1 --num_ps=1 -- \
        hookbridge train examples/digits_job.py --model_dir=runs/job --max_steps=400
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

import hookbridge as hb

DATA = Path(__file__).parent / "data" / "digits.csv"
BATCH_SIZE = 32
params = {"hidden": 32, "learning_rate": 0.01}


def guests() -> list[Any]:
    """Hooks and callbacks, in one list."""
    return [
        tf.compat.v1.train.LoggingTensorHook({"loss": "loss:0"}, every_n_iter=100),
        tf.keras.callbacks.TerminateOnNaN(),
    ]


def model_fn(features: Any, labels: Any, mode: str, params: Any) -> Any:
    """A network with one hidden layer, in plain TF1."""
    v1 = tf.compat.v1
    hidden = v1.get_variable("hidden/kernel", [64, params["hidden"]])
    output = v1.get_variable("output/kernel", [params["hidden"], 10])
    logits = tf.matmul(tf.nn.relu(tf.matmul(features, hidden)), output)
    classes = tf.argmax(logits, -1)
    if mode == hb.estimator.ModeKeys.PREDICT:
        return hb.estimator.EstimatorSpec(mode, predictions=classes)
    entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
    loss = tf.reduce_mean(entropy, name="loss")
    optimizer = v1.train.AdamOptimizer(params["learning_rate"])
    return hb.estimator.EstimatorSpec(
        mode,
        predictions=classes,
        loss=loss,
        train_op=optimizer.minimize(loss, v1.train.get_or_create_global_step()),
        eval_metric_ops={"accuracy": v1.metrics.accuracy(labels, classes)},
    )


def _images(training: bool) -> Any:
    rows = np.loadtxt(DATA, delimiter=",", skiprows=1, dtype=np.float32)
    rows = rows[np.random.RandomState(0).permutation(len(rows))]
    rows = rows[:1408] if training else rows[1408:]
    labels = rows[:, -1].astype(np.int64)
    return tf.data.Dataset.from_tensor_slices((rows[:, :-1] / 16, labels))


def train_input_fn() -> Any:
    """Batches `[32, 64]` without end."""
    data = _images(training=True).shuffle(1408, seed=0).repeat()
    return data.batch(BATCH_SIZE, drop_remainder=True)


def eval_input_fn() -> Any:
    """The images that training never sees."""
    return _images(training=False).batch(100)
