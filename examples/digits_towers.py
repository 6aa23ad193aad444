"""Digits with an Estimator's `model_fn`: towers, and workers that update together.

    hookbridge train examples/digits_towers.py --loop=session \
        --num_towers=2 --train_files=examples/data/digits.csv --header_lines=1 \
        --epochs=3 --model_dir=runs/towers

    hookbridge train examples/digits_towers.py --loop=session \
        --num_workers=1 --num_ps=1 --sync --train_files=examples/data/digits.csv \
        --header_lines=1 --train_steps=60 --model_dir=runs/sync
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

import hookbridge as hb

PIXELS, CLASSES, MAX_PIXEL = 64, 10, 16
# With --sync the command sets `replicas_to_aggregate`: the workers in one update.
params = {"hidden": 32, "learning_rate": 0.01, "replicas_to_aggregate": None}


def model_fn(features: Any, labels: Any, mode: str, params: Any, config: Any) -> Any:
    """A network with one hidden layer, in plain TF1."""
    v1 = tf.compat.v1
    hidden = v1.get_variable("hidden/kernel", [PIXELS, params["hidden"]])
    output = v1.get_variable("output/kernel", [params["hidden"], CLASSES])
    logits = tf.matmul(tf.nn.relu(tf.matmul(features, hidden)), output)
    return classifier(logits, labels, mode, params, config)


def classifier(logits: Any, labels: Any, mode: str, params: Any, config: Any) -> Any:
    """What an Estimator needs of a classifier, whose workers may update together."""
    v1 = tf.compat.v1
    classes = tf.argmax(logits, -1)
    if mode == hb.estimator.ModeKeys.PREDICT:
        return hb.estimator.EstimatorSpec(mode, predictions={"classes": classes})
    entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
    loss = tf.reduce_mean(entropy, name="loss")
    optimizer = v1.train.AdamOptimizer(params["learning_rate"])
    hooks = []
    if params["replicas_to_aggregate"]:
        optimizer = v1.train.SyncReplicasOptimizer(
            optimizer, params["replicas_to_aggregate"]
        )
        hooks.append(optimizer.make_session_run_hook(config.is_chief))
    return hb.estimator.EstimatorSpec(
        mode,
        predictions={"classes": classes},
        loss=loss,
        train_op=optimizer.minimize(loss, v1.train.get_or_create_global_step()),
        eval_metric_ops={"accuracy": v1.metrics.accuracy(labels, classes)},
        training_hooks=hooks,
    )


def dataset_fn(dataset: Any, mode: str) -> Any:
    """Examples of a dataset of lines: 64 pixels and the label."""

    def parse(line: Any) -> Any:
        columns = tf.io.decode_csv(line, [tf.constant(0)] * (PIXELS + 1))
        pixels = tf.cast(tf.stack(columns[:-1]), tf.float32) / MAX_PIXEL
        return pixels, columns[-1]

    dataset = dataset.map(parse, num_parallel_calls=tf.data.AUTOTUNE)
    return dataset.shuffle(1797, seed=1) if mode == "train" else dataset


def guests() -> list[Any]:
    """Hooks and callbacks, in one list."""
    return [
        tf.compat.v1.train.LoggingTensorHook({"loss": "loss:0"}, every_n_iter=50),
        tf.keras.callbacks.TerminateOnNaN(),
    ]
