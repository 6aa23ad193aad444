"""One task of a job that is killed and started again; `rounds.py` starts it.

    TF_CONFIG=... python job.py EVENTS kind=KIND steps=STEPS [death=PLACE:N]

KIND is `one`, `async`, `sync` or `fit`. With `death` the task kills itself when it
comes to that place for the N-th time. Each task notes the state of its callbacks in
EVENTS; the chief writes `final.json` beside it at the end.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

import hookbridge as hb
from hookbridge.ground.processes.tf_config import ClusterConfig

sys.path.append(str(Path(__file__).resolve().parents[1] / "helpers"))

from job_notes import EVENTS, OPTIONS, note
from quick_traces import look_often
from session_trainings import train_until_stop

v1: Any = tf.compat.v1
keras: Any = (
    tf.keras
    if tf.__version__.startswith("2.15")
    else importlib.import_module("tf_keras")
)
STEPS_PER_EPOCH = 10
# In `fit` a checkpoint is saved at the end of an epoch: training goes on by epochs.
SAVE_STEPS = STEPS_PER_EPOCH if OPTIONS.get("kind") == "fit" else 4
STEP_SECS = float(OPTIONS.get("step_secs", "0.005"))
RATE = 0.05
TRUTH = np.array([[1.0], [-2.0], [0.5]], np.float32)


class Journal:
    """Writes the state of the callbacks at each event, and before each save."""

    def __init__(self) -> None:
        self._place, _, count = OPTIONS.get("death", "").partition(":")
        self._left = int(count or 0)
        self.callbacks: list[Any] = []
        self.rate: float | None = None  # at the last event

    def write(self, what: str, **facts: Any) -> None:
        state = {
            f"{type(each).__name__}.{name}": float(getattr(each, name, -1))
            for each, names in zip(self.callbacks, STATE, strict=True)
            for name in names
        }
        note(what, rate=self.rate, state=state, **facts)
        self.come_to(what)

    def come_to(self, place: str) -> None:
        """Kills the process if it has to die at this place, at this time."""
        if place == self._place:
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


class Counter(keras.callbacks.Callback):  # type: ignore[misc,name-defined]
    """A user's callback that counts."""

    def __init__(self) -> None:
        super().__init__()
        self.batches = self.epochs = 0

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.batches += 1
        time.sleep(STEP_SECS)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.epochs += 1


STATE = (("batches", "epochs"), ("best", "wait", "cooldown_counter"), ("best", "wait"))


def callbacks() -> list[Any]:
    """The callbacks whose state is checked; `STATE` names their attributes."""
    return [
        Counter(),
        keras.callbacks.ReduceLROnPlateau(
            "loss", factor=0.7, patience=1, min_delta=0.05, cooldown=1
        ),
        keras.callbacks.EarlyStopping("loss", patience=1000),
    ]


class Recorder(keras.callbacks.Callback):  # type: ignore[misc,name-defined]
    """The last callback: writes the state of the others."""

    def __init__(self, journal: Journal) -> None:
        super().__init__()
        self._journal = journal
        self._began = False

    def _write(self, what: str, **facts: Any) -> None:
        self._journal.rate = float(self.model.optimizer.learning_rate)
        self._journal.write(what, **facts)

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        if not self._began:
            self._began = True
            step = int(self.model.optimizer.iterations)
            self._write("begin", epoch=epoch, step=step)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self._write("step")

    def on_test_begin(self, logs: Any = None) -> None:
        self._journal.come_to("validation")

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self._write("epoch")


class Saving(v1.train.CheckpointSaverListener):  # type: ignore[misc]
    """Writes the state of the callbacks before each checkpoint."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def before_save(self, session: Any, global_step_value: int) -> None:
        self._journal.write("saving", step=int(global_step_value))

    def after_save(self, session: Any, global_step_value: int) -> None:
        self._journal.come_to("saved")


def guests(journal: Journal, folder: Path, saves: bool) -> list[Any]:
    journal.callbacks = callbacks()
    saver = v1.train.CheckpointSaverHook(
        str(folder / "model"), save_steps=SAVE_STEPS, listeners=[Saving(journal)]
    )
    return [*([saver] if saves else []), *journal.callbacks, Recorder(journal)]


def train_in_session(kind: str, folder: Path, steps: int, journal: Journal) -> None:
    """Between-graph training; batches depend only on the global step."""
    with hb.loops.SessionCluster(lost_secs=5, start_secs=120) as cluster:
        if cluster.is_server:
            cluster.serve()
            return
        with tf.Graph().as_default(), v1.device(cluster.device_setter()):
            step = v1.train.get_or_create_global_step()
            seed = tf.stack([tf.cast(step, tf.int32), 7])
            x = tf.random.stateless_normal([16, 3], seed)
            weight = v1.get_variable("weight", [3, 1], initializer=v1.zeros_initializer)
            noise = tf.random.stateless_normal([16, 1], seed + 1)
            error = x @ weight - x @ TRUTH - 0.1 * noise
            loss = tf.reduce_mean(error**2, name="loss")
            rate: Any = RATE
            if kind == "sync":  # a queue of the chief's reads it, outside the loop
                rate = v1.get_variable("rate", initializer=RATE, trainable=False)
            optimizer = v1.train.GradientDescentOptimizer(rate)
            sync = []
            if kind == "sync":
                workers = cluster.num_replicas
                optimizer = v1.train.SyncReplicasOptimizer(optimizer, workers, workers)
                sync = [optimizer.make_session_run_hook(cluster.is_chief)]
            train_op = optimizer.minimize(loss, step)

            hooks = hb.as_hooks(
                [
                    v1.train.StopAtStepHook(last_step=steps),
                    *guests(journal, folder, cluster.is_chief),
                ],
                steps_per_epoch=STEPS_PER_EPOCH,
                logs={"loss": loss},
                validation=lambda: {"val_loss": 1.0},
            )
            all_hooks, place = [*sync, *hooks], folder / "model"
            train_until_stop(cluster.training_session, train_op, all_hooks, place)
    if cluster.is_chief:
        newest = tf.train.load_checkpoint(str(folder / "model"))
        finish(folder, journal, newest.get_tensor("weight"))


def train_in_fit(folder: Path, steps: int, journal: Journal) -> None:
    """`Model.fit` under `ParameterServerStrategy`."""
    look_often()
    strategy = hb.loops.parameter_server_strategy(start_secs=120)
    with strategy.scope():
        layer = keras.layers.Dense(1, use_bias=False, input_shape=[3])
        model = keras.Sequential([layer])
        model.compile(keras.optimizers.SGD(RATE), "mse")
    if tf.train.latest_checkpoint(str(folder / "model")):
        hb.checkpoints.restore(model, str(folder / "model"))
    x = np.random.default_rng(0).normal(size=[256, 3]).astype(np.float32)
    data = tf.data.Dataset.from_tensor_slices((x, x @ TRUTH)).repeat().batch(16)
    model.fit(
        data,
        initial_epoch=int(model.optimizer.iterations) // STEPS_PER_EPOCH,
        epochs=steps // STEPS_PER_EPOCH,
        steps_per_epoch=STEPS_PER_EPOCH,
        validation_data=data,
        validation_steps=1,
        verbose=0,
        callbacks=hb.as_callbacks(guests(journal, folder, True), max_lag=4),
    )
    if int(model.optimizer.iterations) >= steps:
        finish(folder, journal, layer.kernel.numpy())


def finish(folder: Path, journal: Journal, weight: Any) -> None:
    """Writes the final weights and states."""
    state = [
        [float(getattr(each, name)) for name in names]
        for each, names in zip(journal.callbacks, STATE, strict=True)
    ]
    newest = tf.train.load_checkpoint(str(folder / "model"))
    step = int(newest.get_tensor("global_step"))
    final = {"weight": weight.ravel().tolist(), "state": state, "step": step}
    (folder / "final.json").write_text(json.dumps(final))


def main() -> None:
    kind, folder, steps = OPTIONS["kind"], EVENTS.parent, int(OPTIONS["steps"])
    if ClusterConfig.from_environment().task_type == "evaluator":
        for path in hb.loops.checkpoints_until_stop(
            str(folder / "model"), lost_secs=60
        ):
            (folder / "evaluated.json").write_text(path.rpartition("-")[2])
    elif kind == "fit":
        train_in_fit(folder, steps, Journal())
    else:
        train_in_session(kind, folder, steps, Journal())


if __name__ == "__main__":
    main()
