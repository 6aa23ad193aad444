"""Digits from a CSV file, as a model definition file with a Keras model.

    hookbridge train examples/digits_keras.py --loop=fit --epochs=5 \
        --train_files=examples/data/digits.csv --header_lines=1 --model_dir=runs/fit

`--loop=session` and `--loop=estimator` train the same model in a session, with the same
callbacks and the same losses.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

PIXELS, CLASSES, MAX_PIXEL = 64, 10, 16
KEEP = 1797  # shuffle over the whole file


def custom_model() -> Any:
    """One hidden layer."""
    return tf.keras.Sequential(
        [
            tf.keras.Input([PIXELS]),
            tf.keras.layers.Dense(32, activation="relu", name="hidden"),
            tf.keras.layers.Dense(CLASSES, name="logits"),
        ]
    )


def loss(labels: Any, predictions: Any) -> Any:
    """The loss of each example; its mean is what is trained."""
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels, predictions)


def optimizer() -> Any:
    """Adam."""
    return tf.keras.optimizers.Adam(0.01)


def dataset_fn(dataset: Any, mode: str) -> Any:
    """Examples of a dataset of lines: 64 pixels and the label."""

    def parse(line: Any) -> Any:
        columns = tf.io.decode_csv(line, [tf.constant(0)] * (PIXELS + 1))
        pixels = tf.cast(tf.stack(columns[:-1]), tf.float32) / MAX_PIXEL
        if mode == "infer":
            return pixels
        return pixels, columns[-1]

    dataset = dataset.map(parse, num_parallel_calls=tf.data.AUTOTUNE)
    return dataset.shuffle(KEEP, seed=1) if mode == "train" else dataset


def eval_metrics_fn() -> Any:
    """Metrics by name, each of the examples of a batch."""
    return {
        "accuracy": lambda labels, predictions: tf.equal(
            tf.argmax(predictions, -1, output_type=tf.int32), labels
        )
    }


def callbacks() -> list[Any]:
    """Keras callbacks, for all loops."""
    return [tf.keras.callbacks.EarlyStopping("loss", patience=3)]


def hooks() -> list[Any]:
    """Hooks, for all loops."""
    return [
        tf.compat.v1.train.LoggingTensorHook(
            ["loss:0", "learning_rate:0"], every_n_iter=100
        )
    ]
