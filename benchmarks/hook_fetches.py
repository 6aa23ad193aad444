"""What hooks cost in `Model.fit`, compared with callbacks that do the same.

    python benchmarks/hook_fetches.py --json=fetches.json

It measures three pairs. 1 and 10 hooks that fetch nothing are compared with as many
native callbacks with empty batch methods. `LoggingTensorHook` on the loss and a layer's
output in every step is compared with a hand-written callback and `train_step` that log
the same.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
import tensorflow as tf

import hookbridge as hb
from benchmarks import base
from benchmarks.fit_cases import fit_case
from benchmarks.overhead_cases import BATCH_SIZE, RATE, SIZES, Work

v1: Any = tf.compat.v1
keras: Any = tf.keras


class EmptyCallback(keras.callbacks.Callback):  # type: ignore[misc]
    """Overrides the batch methods and does nothing in them."""

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        pass

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        pass


class IdleHook(v1.train.SessionRunHook):  # type: ignore[misc]
    """Overrides the methods of a run and fetches nothing."""

    def before_run(self, run_context: Any) -> None:
        pass

    def after_run(self, run_context: Any, run_values: Any) -> None:
        pass


class HandModel(keras.Model):  # type: ignore[misc]
    """A `train_step` that returns the hidden layer's output beside the loss."""

    def train_step(self, data: Any) -> dict[str, Any]:
        x, y = data
        with tf.GradientTape() as tape:
            hidden = self.layers[1](x)
            loss = self.compute_loss(x=x, y=y, y_pred=self.layers[2](hidden))
        variables = self.trainable_variables
        gradients = tape.gradient(loss, variables)
        self.optimizer.apply_gradients(zip(gradients, variables, strict=True))
        self.mean.update_state(loss)
        return {"loss": self.mean.result(), "batch_loss": loss, "hidden": hidden}

    @property
    def metrics(self) -> list[Any]:
        return [self.mean]


class HandCallback(keras.callbacks.Callback):  # type: ignore[misc]
    """Logs what the hand-written step returns, as `LoggingTensorHook` does."""

    _supports_tf_logs = True  # takes the tensors and converts what it needs

    def __init__(self, note: Any) -> None:
        super().__init__()
        self._note = note

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        loss = np.asarray(logs["batch_loss"])
        hidden = np.asarray(logs["hidden"])
        v1.logging.info(self._note({"loss:0": loss, "hidden/Relu:0": hidden}))


def model(work: Work, cls: Any = None) -> Any:
    """The network of `bridge_overhead`, with names, of the given class."""
    inputs, hidden, outputs = SIZES
    x = keras.Input([inputs])
    h = keras.layers.Dense(hidden, activation="relu", name="hidden")(x)
    made = (cls or keras.Model)(x, keras.layers.Dense(outputs, name="out")(h))
    made.set_weights(work.weights)
    if cls is not None:
        made.mean = keras.metrics.Mean(name="loss")
    made.compile(
        optimizer=keras.optimizers.SGD(RATE),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        jit_compile=False,
    )
    return made


class Notes:
    """What one side logged; the losses are compared with those of the other side."""

    def __init__(self) -> None:
        self.losses: list[float] = []
        self.shape: tuple[int, ...] = ()

    def __call__(self, values: Any) -> str:
        self.losses.append(float(values["loss:0"]))
        self.shape = values["hidden/Relu:0"].shape
        return "logged"


PAIRS = (
    ("1 empty callback", "1 idle hook"),
    ("10 empty callbacks", "10 idle hooks"),
    ("hand-written step and callback", "LoggingTensorHook"),
)


def cases(work: Work) -> tuple[list[base.Case], tuple[Notes, Notes]]:
    """All six cases, and what the logging ones noted."""
    by_hand, by_hook = Notes(), Notes()
    names = ["loss:0", "hidden/Relu:0"]
    hook = v1.train.LoggingTensorHook(names, every_n_iter=1, formatter=by_hook)
    guests: list[tuple[Any, list[Any]]] = [
        (None, [EmptyCallback()]),
        (None, hb.as_callbacks([IdleHook()])),
        (None, [EmptyCallback() for _ in range(10)]),
        (None, hb.as_callbacks([IdleHook() for _ in range(10)])),
        (HandModel, [HandCallback(by_hand)]),
        (None, hb.as_callbacks([hook])),
    ]
    titles = [name for pair in PAIRS for name in pair]
    made = [
        fit_case(title, work, callbacks, model(work, cls))
        for title, (cls, callbacks) in zip(titles, guests, strict=True)
    ]
    return made, (by_hand, by_hook)


def main(arguments: list[str] | None = None) -> int:
    options = base.parse(str(__doc__), arguments, steps=500)
    v1.logging.set_verbosity(v1.logging.ERROR)
    work = Work(options.steps)
    made, (by_hand, by_hook) = cases(work)
    timings = base.measure(made, repeats=options.repeats)
    base.check_losses(
        {
            "by hand": float(np.mean(by_hand.losses)),
            "by hook": float(np.mean(by_hook.losses)),
        }
    )
    if not by_hand.shape == by_hook.shape == (BATCH_SIZE, SIZES[1]):
        raise AssertionError("the two sides did not log the same tensor")
    base.print_facts(options)
    rows = [
        [
            f"{native} / {bridged}",
            f"{timings[native].microsecs:.0f}",
            f"{timings[bridged].microsecs:.0f}",
            f"{timings[bridged].ratio_to(timings[native]):.2f}",
        ]
        for native, bridged in PAIRS
    ]
    header = ["`Model.fit`", "native, us/step", "bridged, us/step", "ratio"]
    print(base.markdown(rows, header))
    base.write_json(options, timings=timings)
    return 0


if __name__ == "__main__":
    base.one_thread_per_op()
    sys.exit(main())
