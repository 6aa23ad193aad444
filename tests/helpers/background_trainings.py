"""Trainings in each host with a saving hook, and what they leave in their folders."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from estimator_models import estimators
from session_trainings import train_until_stop

import hookbridge as hb

v1: Any = tf.compat.v1
LAST_STEP, SAVE_STEPS, LENGTH = 33, 5, 10
# The same data in each batch, since a restart may be within an epoch.
X = np.tile(np.random.RandomState(0).rand(8, 4), [LENGTH, 1]).astype("float32")
Y = X.sum(1, keepdims=True)
Guests = list[Any]


def in_session(keras: Any, folder: Path, guests: Guests) -> None:
    """A session whose callbacks assign the rate, a variable."""
    with tf.Graph().as_default():
        weight = v1.get_variable("weight", initializer=np.ones([20, 3], "float32"))
        rate = v1.get_variable("rate", initializer=0.1, trainable=False)
        loss = tf.reduce_mean((weight - 3.0) ** 2)
        step = v1.train.get_or_create_global_step()
        train_op = v1.train.AdamOptimizer(rate).minimize(loss, step)
        hooks = hb.as_hooks(
            guests, steps_per_epoch=LENGTH, logs={"loss": loss}, learning_rate=rate
        )
        train_until_stop(v1.train.MonitoredTrainingSession, train_op, hooks, folder)


def in_fit(keras: Any, folder: Path, guests: Guests) -> None:
    """A `fit`, which goes on from the checkpoint in its folder."""
    keras.utils.set_random_seed(1)
    layers = [keras.layers.Dense(5, name="hidden"), keras.layers.Dense(1, name="out")]
    model = keras.Sequential([keras.layers.Input([4]), *layers], name="model")
    model.compile(keras.optimizers.Adam(0.1, name="adam"), "mse")
    if (folder / "checkpoint").exists():
        hb.checkpoints.restore(model, str(folder))
    model.fit(
        *(X, Y, 8),
        epochs=99,
        initial_epoch=int(model.optimizer.iterations) // LENGTH,
        shuffle=False,
        verbose=0,
        callbacks=hb.as_callbacks(guests),
    )


def in_an_estimator(keras: Any, folder: Path, guests: Guests) -> None:
    """The training of an Estimator."""

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        weight = v1.get_variable("weight", [4, 1], initializer=v1.ones_initializer())
        loss = tf.reduce_mean((features @ weight - labels) ** 2, name="loss")
        step = v1.train.get_or_create_global_step()
        train_op = v1.train.AdamOptimizer(0.1).minimize(loss, step)
        return estimators.EstimatorSpec(mode, loss=loss, train_op=train_op)

    def input_fn() -> Any:
        return tf.data.Dataset.from_tensor_slices((X, Y)).batch(8).repeat()

    hooks = hb.as_hooks(guests, steps_per_epoch=LENGTH)
    estimators.Estimator(model_fn, str(folder)).train(input_fn, hooks=hooks)


class Listener(v1.train.CheckpointSaverListener):  # type: ignore[misc]
    """Notes its events, and whether the files of the save are there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.events: list[tuple[Any, ...]] = []

    def _note(self, event: str, step: Any) -> None:
        is_there = (self._folder / f"model.ckpt-{int(step)}.index").exists()
        self.events.append((event, int(step), is_there))

    def begin(self) -> None:
        self.events.append(("begin",))

    def before_save(self, session: Any, global_step_value: Any) -> None:
        self._note("before", global_step_value)

    def after_save(self, session: Any, global_step_value: Any) -> bool | None:
        self._note("after", global_step_value)
        return None

    def end(self, session: Any, global_step_value: Any) -> None:
        self._note("end", global_step_value)


def guests_of(keras: Any, saver: Any, *more: Any, last_step: int = LAST_STEP) -> Guests:
    """A saver, callbacks that have a state, one of which sets the rate, and a stop."""
    return [
        saver,
        keras.callbacks.ReduceLROnPlateau(
            "loss", factor=0.5, patience=1, min_delta=1e9
        ),
        keras.callbacks.EarlyStopping("loss", patience=99),
        *more,
        v1.train.StopAtStepHook(last_step=last_step),
    ]


def left_in(folder: Path) -> dict[str, Any]:
    """What training has left: names, checkpoints and states."""
    names = {re.sub(r"tfevents.*", "tfevents", each.name) for each in folder.iterdir()}
    found: dict[str, Any] = {"names": names}
    state = tf.train.get_checkpoint_state(str(folder))
    found["kept"] = [Path(p).name for p in state.all_model_checkpoint_paths]
    for name in found["kept"]:
        reader = tf.train.load_checkpoint(str(folder / name))
        for variable in reader.get_variable_to_shape_map():
            found[f"{name} {variable}"] = reader.get_tensor(variable).tolist()
        states = json.loads((folder / f"{name}.hookbridge.json").read_text())
        found[f"state of {name}"] = states["callbacks"], states["step"]
        found[f"in step {name}"] = states["in_step"]
    return found


TRAININGS = (in_session, in_fit, in_an_estimator)
