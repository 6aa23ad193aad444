"""Digits, one list of hooks and callbacks, both training loops: the file of the demo.

    hookbridge demo

trains it in a session and in `Model.fit`, and reports what each guest saw. Each loop
can be had alone:

    hookbridge train examples/digits_in_both_loops.py --loop=session --num_towers=2 \
        --train_files=examples/data/digits.csv --eval_files=examples/data/digits.csv \
        --header_lines=1 --steps_per_epoch=45 --epochs=5 --report --model_dir=runs/mine

Keras 3 cannot build a graph for a session. So the file has the network twice, with the
same names and first weights: as a Keras model for `fit`, and in plain TF1.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import time
from typing import Any

import numpy as np
import tensorflow as tf

import hookbridge as hb

v1 = tf.compat.v1
PIXELS, HIDDEN, CLASSES, MAX_PIXEL = 64, 64, 10, 16
LINES, EVALUATION_LINES = 1797, 352
KEPT_APART = 5  # one line in about so many is for the evaluation
EPSILON = 1e-7  # of Adam: Keras's default, where TF1 has another


def first_weights(layer: str) -> Any:
    """The kernel that a layer begins with: Glorot's uniform distribution."""
    shape = {"hidden": (PIXELS, HIDDEN), "logits": (HIDDEN, CLASSES)}[layer]
    limit = np.sqrt(6 / sum(shape))
    rng = np.random.default_rng(len(layer) + shape[1])
    return rng.uniform(-limit, limit, shape).astype(np.float32)


def custom_model() -> Any:
    """The network for `fit`."""

    def dense(units: int, name: str, activation: Any = None) -> Any:
        first = tf.keras.initializers.Constant(first_weights(name))
        return tf.keras.layers.Dense(
            units, activation, kernel_initializer=first, name=name
        )

    return tf.keras.Sequential(
        [
            tf.keras.Input([PIXELS]),
            dense(HIDDEN, "hidden", "relu"),
            dense(CLASSES, "logits"),
        ]
    )


def graph_model(features: Any, mode: str) -> Any:
    """The same network for a session."""
    del mode

    def dense(x: Any, layer: str) -> Any:
        kernel = v1.get_variable("kernel", initializer=first_weights(layer))
        bias = v1.get_variable(
            "bias", kernel.shape[1:], initializer=v1.zeros_initializer()
        )
        return tf.nn.bias_add(tf.matmul(x, kernel), bias)

    with v1.variable_scope("hidden"):
        hidden = tf.nn.relu(dense(features, "hidden"), name="Relu")
    with v1.variable_scope("logits"):
        return dense(hidden, "logits")


def loss(labels: Any, predictions: Any) -> Any:
    """The loss of each example."""
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels, predictions)


def optimizer(learning_rate: Any = 0.003) -> Any:
    """Adam; in a session the learning rate is a tensor."""
    if tf.executing_eagerly():
        return tf.keras.optimizers.Adam(learning_rate, epsilon=EPSILON)
    return v1.train.AdamOptimizer(learning_rate, epsilon=EPSILON)


def eval_metrics_fn() -> dict[str, Any]:
    """Metrics by name, each of the examples of a batch."""
    return {
        "accuracy": lambda labels, predictions: tf.equal(
            tf.argmax(predictions, -1, output_type=tf.int32), labels
        )
    }


def dataset_fn(dataset: Any, mode: str) -> Any:
    """Examples of a dataset of lines: 64 pixels and the label."""

    def parse(lines: Any) -> Any:
        is_apart = tf.equal(tf.strings.to_hash_bucket_fast(lines, KEPT_APART), 0)
        is_of_mode = tf.not_equal(is_apart, mode == "train")
        columns = tf.io.decode_csv(
            tf.boolean_mask(lines, is_of_mode), [tf.constant(0)] * (PIXELS + 1)
        )
        pixels = tf.cast(tf.stack(columns[:-1], axis=1), tf.float32) / MAX_PIXEL
        return pixels, columns[-1]

    # All lines at once: that is many times faster than one after the other.
    dataset = dataset.batch(LINES).map(parse).unbatch()
    if mode == "train":
        return dataset.shuffle(LINES, seed=1)
    # How many these are is not known to the loops, and they would ask for one more.
    return dataset.apply(tf.data.experimental.assert_cardinality(EVALUATION_LINES))


class ActivityHook(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
    """A user's own hook, written for TF1: it watches the hidden layer at each step."""

    def begin(self) -> None:
        self.peak: Any = np.zeros(HIDDEN)

    def before_run(self, run_context: Any) -> Any:
        return v1.train.SessionRunArgs("hidden/Relu:0")

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self.peak = np.maximum(self.peak, run_values.results.max(axis=0))

    def end(self, session: Any) -> None:
        print(f"{np.sum(self.peak <= 0)} units of the hidden layer were never active")


class EpochLines(tf.keras.callbacks.Callback):  # type: ignore[misc]
    """A user's own callback, written for `fit`: it prints a line for each epoch."""

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self.began = time.perf_counter()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        values = {**(logs or {}), "secs": time.perf_counter() - self.began}
        words = [f"{name} {float(value):.4g}" for name, value in values.items()]
        over = "\r\x1b[K" if sys.stderr.isatty() else ""  # the line of progress
        print(f"{over}epoch {epoch + 1:>3}  {'  '.join(words)}", flush=True)


def hooks(model_dir: str) -> list[Any]:
    """Hooks, for both loops."""
    folder = os.path.join(model_dir, "step_counter")
    return [
        v1.train.LoggingTensorHook(["loss:0", "learning_rate:0"], every_n_iter=200),
        # A cluster runs each hook in every process, and this one writes a file.
        hb.set_role(v1.train.StepCounterHook(50, output_dir=folder), "chief"),
        ActivityHook(),
    ]


def callbacks(model_dir: str) -> list[Any]:
    """Callbacks, for both loops."""
    stock = tf.keras.callbacks
    best = os.path.join(model_dir, "best.weights.h5")
    result = [
        stock.ReduceLROnPlateau("val_loss", factor=0.3, patience=2),
        stock.EarlyStopping(
            "val_loss", min_delta=0.002, patience=4, restore_best_weights=True
        ),
        stock.ModelCheckpoint(
            best, "val_loss", save_best_only=True, save_weights_only=True
        ),
        stock.CSVLogger(os.path.join(model_dir, "metrics.csv")),
        EpochLines(),
    ]
    if importlib.util.find_spec("tensorboard") is not None:
        folder = os.path.join(model_dir, "tensorboard")
        result.append(stock.TensorBoard(folder, write_graph=False))
    return result
