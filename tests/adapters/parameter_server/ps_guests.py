"""Models, data and guests that the jobs and the tests beside them share."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from callback_recorder import noting
from job_notes import note as note

v1: Any = tf.compat.v1
BATCHES = 6
EPOCHS = 2


def keras2() -> Any:
    """The Keras that supports the strategy: `tf.keras` on TF 2.15, else tf_keras."""
    if tf.__version__.startswith("2.15"):
        return tf.keras
    import tf_keras

    return tf_keras


keras: Any = keras2()


def mean_output(y: Any, y_pred: Any) -> Any:
    """A loss whose gradient for the bias is 1 in every step."""
    return tf.reduce_mean(y_pred)


TRACES: list[None] = []  # one for each time that `square_output` was traced


def square_output(y: Any, y_pred: Any) -> Any:
    """A loss that depends on the batch."""
    TRACES.append(None)
    return tf.reduce_mean(tf.square(y_pred))


def model(loss: Any, rate: float, **options: Any) -> Any:
    """A hidden layer and one output, weights all 0.1, biases 0."""
    constant = keras.initializers.Constant(0.1)
    made = keras.Sequential(
        [
            keras.layers.Dense(
                4,
                activation="relu",
                name="hidden",
                input_shape=(3,),
                kernel_initializer=constant,
            ),
            keras.layers.Dense(1, name="out", kernel_initializer=constant),
        ]
    )
    # A job makes the optimizer in the strategy's scope: the rate is on the server too.
    made.compile(keras.optimizers.SGD(rate), loss, **options)
    return made


class TrainedByItsOwn(keras.Model):  # type: ignore[misc, name-defined]
    """A model whose step uses an optimizer of its own; that of `compile` is idle."""

    def __init__(self) -> None:
        super().__init__()
        self.out = keras.layers.Dense(1, kernel_initializer="zeros")
        self.second = keras.optimizers.SGD(0.5)
        self.build((None, 3))
        self.second.build(self.trainable_variables)
        self.compile(keras.optimizers.SGD(0.25), "mse")

    def call(self, inputs: Any) -> Any:
        return self.out(inputs)

    def train_step(self, data: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(self(data[0]))
        weights = self.trainable_variables
        pairs = zip(tape.gradient(loss, weights), weights, strict=True)
        self.second.apply_gradients(pairs)
        return {"loss": loss}


def batches(context: Any = None) -> Any:
    """Endless data; batches differ."""
    x = np.random.default_rng(0).normal(size=[64, 3]).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices((x, x[:, :1])).repeat().batch(5)


class Recorder:
    """What guests received: `[guest, event, number, facts]` each."""

    def __init__(self) -> None:
        self.events: list[list[Any]] = []

    def add(self, guest: str, event: str, number: Any = None, facts: Any = None) -> Any:
        self.events.append([guest, event, number, facts])


class NotingHook(v1.train.SessionRunHook):  # type: ignore[misc]
    """Fetches the loss, a layer's output and the global step; notes every event."""

    def __init__(self, log: Recorder, name: str) -> None:
        self._log, self._name = log, name

    def begin(self) -> None:
        self._step = v1.train.get_global_step()
        self._log.add(self._name, "begin")

    def after_create_session(self, session: Any, coord: Any) -> None:
        self._log.add(self._name, "after_create_session", int(session.run(self._step)))

    def before_run(self, run_context: Any) -> Any:
        step = int(run_context.session.run(self._step))
        self._log.add(self._name, "before_run", step)
        names = {"loss": "loss:0", "hidden": "hidden/Relu:0", "step": self._step}
        return v1.train.SessionRunArgs(names)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        fetched = run_values.results
        hidden = np.asarray(fetched["hidden"])
        facts = {
            "loss": float(fetched["loss"]),
            "step": int(fetched["step"]),
            "shape": list(hidden.shape),
            # The loss of the step, computed from its activations.
            "expected": float(np.mean(np.square(hidden.sum(axis=1) * 0.1))),
        }
        step = int(run_context.session.run(self._step))
        self._log.add(self._name, "after_run", step, facts)

    def end(self, session: Any) -> None:
        self._log.add(self._name, "end", int(session.run(self._step)))


def noting_callback(log: Recorder, name: str) -> Any:
    """Notes every event, batch events too."""

    def note(callback: Any, event: str, *arguments: Any) -> None:
        number = arguments[0] if len(arguments) == 2 else None
        has_logs = event.endswith("_end") and event != "on_train_end"
        log.add(name, event, number, kinds(arguments[-1]) if has_logs else None)

    return noting(keras, note)


def noting_epochs(log: Recorder) -> Any:
    """A callback without batch events: plain Keras accepts it under the strategy."""

    def note(callback: Any, event: str, epoch: int, logs: Any) -> None:
        log.add("epochs", event, epoch)

    return noting(keras, note, ["on_epoch_end"])


def kinds(logs: Any) -> dict[str, str]:
    """The keys of logs and the types of their values, and the mode."""
    types = {key: type(value).__name__ for key, value in (logs or {}).items()}
    return {**types, "mode": "eager" if tf.executing_eagerly() else "graph"}


def guests(log: Recorder) -> list[Any]:
    """The same hooks and callbacks for every host."""
    return [
        noting_epochs(log),
        noting_callback(log, "first"),
        NotingHook(log, "hook"),
        noting_callback(log, "second"),
        NotingHook(log, "other hook"),
    ]
