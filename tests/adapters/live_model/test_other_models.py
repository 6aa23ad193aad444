"""A callback gives the optimizer of a session to another model, and saves that."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import hookbridge as hb

v1: Any = tf.compat.v1

FILES = {
    "w.h5": "save_weights",
    "w.weights.h5": "save_weights",
    "weights": "save_weights",  # as TensorFlow saves objects
    "m.h5": "save",
    "m.keras": "save",
    "folder": "save",
}


def test_another_model_gets_the_optimizer_and_is_saved(
    keras: Any, subtests: pytest.Subtests, tmp_path: Any, absl_records: Any
) -> None:
    """As an `AltModelCheckpoint` does by default."""
    is_keras2 = str(keras.__version__).startswith("2")
    files = FILES if is_keras2 else {k: FILES[k] for k in list(FILES)[1::3]}
    other = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    steps: list[int] = []

    def give(self: Any, *_: Any, **__: Any) -> None:
        other.optimizer = self.model.optimizer
        steps.append(int(other.optimizer.iterations))
        for name, method in files.items():
            with subtests.test(name):
                getattr(other, method)(str(tmp_path / name))

    callback = type("Alt", (keras.callbacks.Callback,), {"on_epoch_end": give})()
    in_small_session(callback, steps=2)
    assert steps == [1, 2]
    assert len(absl_records("has no slots of the optimizer")) == 1
    for name, method in files.items():
        with subtests.test(f"{name} again"):
            if method == "save":
                again = keras.models.load_model(str(tmp_path / name))
            else:
                again = keras.models.clone_model(other)
                again.load_weights(str(tmp_path / name))
            for one, two in zip(again.get_weights(), other.get_weights(), strict=True):
                np.testing.assert_array_equal(one, two)


def test_an_optimizer_is_not_saved_alone(keras: Any) -> None:
    def hold(self: Any, *_: Any, **__: Any) -> None:
        tf.train.Checkpoint(optimizer=self.model.optimizer)

    callback = type("Alone", (keras.callbacks.Callback,), {"on_train_begin": hold})()
    with pytest.raises(hb.errors.LiveModelError, match="optimizer` alone"):
        in_small_session(callback, steps=1)


def in_small_session(callback: Any, steps: int) -> None:
    """An epoch of each step; one variable."""
    with tf.Graph().as_default():
        loss = tf.square(v1.get_variable("w", initializer=1.0), name="loss")
        step = v1.train.get_or_create_global_step()
        train_op = v1.train.AdamOptimizer(0.1).minimize(loss, step)
        hooks = hb.as_hooks([callback], steps_per_epoch=1)
        with v1.train.SingularMonitoredSession(hooks=hooks) as session:
            for _ in range(steps):
                session.run(train_op)
