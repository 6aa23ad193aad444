"""The same small classifier under a MonitoredTrainingSession and under `fit`.

Weights, optimizer, batches and their order are the same, so hooks must observe the
same in both loops.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from hookbridge.adapters.hook_to_callback import HookToCallback

v1: Any = tf.compat.v1
BATCH, BATCHES, EPOCHS = 8, 4, 3
STEPS = BATCHES * EPOCHS
RATE = 0.2
_RANDOM = np.random.RandomState(7)
X = _RANDOM.rand(BATCH * BATCHES, 4).astype("float32")
Y = (X.sum(1) * 3 % 3).astype("int64")
WEIGHTS = {
    "hidden/kernel": _RANDOM.randn(4, 8).astype("float32"),
    "hidden/bias": np.full(8, 0.1, "float32"),
    "out/kernel": _RANDOM.randn(8, 3).astype("float32"),
    "out/bias": np.zeros(3, "float32"),
}


def build_graph() -> Any:
    """The classifier as v1 ops in the default graph; returns the train op."""
    data = tf.data.Dataset.from_tensor_slices((X, Y)).batch(BATCH).repeat(EPOCHS)
    x, y = v1.data.make_one_shot_iterator(data).get_next()
    step = v1.train.get_or_create_global_step()
    weights = {
        name: v1.get_variable(name, initializer=tf.constant(value), use_resource=True)
        for name, value in WEIGHTS.items()
    }
    with tf.name_scope("hidden/"):
        z = tf.matmul(x, weights["hidden/kernel"]) + weights["hidden/bias"]
        hidden = tf.nn.relu(z, name="Relu")
    logits = tf.matmul(hidden, weights["out/kernel"]) + weights["out/bias"]
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
    loss = tf.reduce_mean(losses, name="loss")
    rate = v1.placeholder_with_default(RATE, [], name="learning_rate")
    # TensorFlow's hooks read the step in the run that moves it; the order is undefined.
    # Here the read comes first: hooks read the tensor in this collection.
    read = tf.identity(step.read_value(), name="global_step/read_first")
    v1.add_to_collection("global_step_read_op_cache", read)
    with tf.control_dependencies([read]):
        return v1.train.GradientDescentOptimizer(rate).minimize(loss, global_step=step)


def in_session(hooks: list[Any]) -> int:
    """Trains in a MonitoredTrainingSession; returns the number of runs made."""
    runs = 0
    with tf.Graph().as_default():
        train_op = build_graph()
        with v1.train.MonitoredTrainingSession(
            hooks=hooks,
            save_summaries_steps=None,
            save_summaries_secs=None,
            log_step_count_steps=0,
        ) as session:
            while not session.should_stop():
                session.run(train_op)
                runs += 1
    return runs


@functools.cache
def mirrored() -> Any:
    """The one `MirroredStrategy` of the process, over two logical CPUs.

    A second one over the same devices reuses the numbers of the first one's
    collective operations, and TensorFlow then fails on their shapes.
    """
    return tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


def keras_model(keras: Any, strategy: Any = None, **compile_args: Any) -> Any:
    """The classifier as a compiled Keras model with the same weights."""
    scope = strategy.scope() if strategy is not None else contextlib.nullcontext()
    with scope:
        model = keras.Sequential(
            [
                keras.Input((4,)),
                keras.layers.Dense(8, activation="relu", name="hidden"),
                keras.layers.Dense(3, name="out"),
            ],
            name="classifier",
        )
        compile_args.setdefault("optimizer", keras.optimizers.SGD)
        compile_args["optimizer"] = compile_args["optimizer"](RATE)
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(loss=loss, **compile_args)
    model.set_weights(list(WEIGHTS.values()))
    return model


def in_fit(keras: Any, hooks: list[Any], **kwargs: Any) -> Any:
    """Trains with `fit` and bridged hooks; returns the model and its history."""
    callbacks = [*map(HookToCallback, hooks)]
    model = kwargs.pop("model", None) or keras_model(keras)
    fit_args = {"batch_size": BATCH, "epochs": EPOCHS, "shuffle": False, "verbose": 0}
    history = model.fit(X, Y, callbacks=callbacks, **{**fit_args, **kwargs})
    return model, history


def short(name: str) -> str:
    """A variable's name without the name of the Keras model around it."""
    return name.removeprefix("classifier/")


def read_checkpoint(path: str) -> dict[str, Any]:
    """The classifier's weights and the global step in a checkpoint."""
    reader = tf.train.load_checkpoint(path)
    return {
        short(name): reader.get_tensor(name)
        for name in reader.get_variable_to_shape_map()
        if short(name) in WEIGHTS or name == "global_step"
    }


def read_scalars(directory: Path) -> list[tuple[int, str, float]]:
    """`(step, tag, value)` of every scalar in a directory's event files."""
    found = []
    v1.summary.FileWriterCache.clear()  # StepCounterHook does not flush its writer
    for path in sorted(directory.glob("events.out.tfevents.*")):
        for event in v1.train.summary_iterator(str(path)):
            for value in event.summary.value:
                if value.HasField("simple_value"):
                    found.append((event.step, value.tag, value.simple_value))
    return found


@contextlib.contextmanager
def tf_log() -> Iterator[list[str]]:
    """The lines TensorFlow logs at INFO, without their timings."""
    logger = logging.getLogger("tensorflow")
    lines: list[str] = []
    handler, level = logging.Handler(), logger.level
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield lines
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
        lines[:] = [re.sub(r" ?\([\d.]+ sec\)", "", line) for line in lines]
