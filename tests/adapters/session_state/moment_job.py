"""One run of the training of `moment_hosts` in a cluster; the chief notes what it has.

    TF_CONFIG=... python tests/adapters/session_state/moment_job.py EVENTS \
        kind=sync|asynchronous|servers|workers dir=FOLDER [END=NUMBER]

END says what ends the run: `last` a hook that stops it at a step, `hook` and `callback`
an error of one at a step, `sigterm` a signal that the chief gets in a run, `data` that
this process has batches for so many runs, `epochs` that so many are asked for.
"""

from __future__ import annotations

import importlib.util
import math
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
TESTS = HERE.parents[1]
HELPERS = [str(HERE.parent / "helpers"), str(TESTS / "helpers")]
sys.path[:0] = [*HELPERS, str(TESTS.parent)]

import tensorflow as tf  # noqa: E402
from job_notes import EVENTS, OPTIONS, note  # noqa: E402
from quick_traces import look_often  # noqa: E402

import hookbridge as hb  # noqa: E402

look_often()
KIND = OPTIONS.pop("kind")
if KIND == "servers":  # all but the chief end here, and need no Keras
    STRATEGY: Any = hb.loops.parameter_server_strategy()

import numpy as np  # noqa: E402
from callback_recorder import callback_of  # noqa: E402
from moment_hosts import (  # noqa: E402
    EPOCHS,
    LENGTH,
    RATE,
    at_step,
    compiled,
    setter,
)

HAS_TF_KERAS = importlib.util.find_spec("tf_keras") is not None
keras: Any = importlib.import_module("tf_keras") if HAS_TF_KERAS else tf.keras
v1: Any = tf.compat.v1
FOLDER = OPTIONS.pop("dir")
((END, AT),) = ((end, int(at)) for end, at in OPTIONS.items())
ASKED_EPOCHS = AT if END == "epochs" else EPOCHS
PATIENCE_SECS = 2.0
BATCHES = AT if END == "data" else None


class Sigterm(v1.train.SessionRunHook):  # type: ignore[misc]
    """Sends SIGTERM to the process of the chief after a step; makes all steps slow."""

    def __init__(self, is_chief: bool) -> None:
        self.runs, self.sends_in = 0, AT if is_chief else 0

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self.runs += 1
        if self.runs == self.sends_in:
            os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.2)


class NotAhead(v1.train.SessionRunHook):  # type: ignore[misc]
    """A worker begins no run before the chief has begun as many.

    So the chief takes part in each epoch, however slow it is: a worker that is alone
    for a while takes the tokens of both and makes updates without the chief. If some
    gradients came too late, the chief waits for one more. Where nobody waits for
    gradients, a worker that is behind does not catch up.
    """

    def __init__(self, is_chief: bool, is_sync: bool) -> None:
        self.runs, self.is_chief, self.is_sync = 0, is_chief, is_sync
        self.of_chief = EVENTS.with_name("worker_0.jsonl")

    def before_run(self, run_context: Any) -> None:
        if self.is_chief:
            note("run")
            return
        self.runs += 1
        end = time.monotonic() + (PATIENCE_SECS if self.is_sync else math.inf)
        while not self.may_run() and time.monotonic() < end:
            time.sleep(0.01)

    def may_run(self) -> bool:
        notes = self.of_chief.read_text() if self.of_chief.exists() else ""
        runs = notes.count('"run"')
        may_run = runs >= self.runs or '"left"' in notes
        if not self.is_sync:
            self.runs = max(self.runs, runs)
        return may_run


def guests(*, is_chief: bool = True) -> list[Any]:
    """The callbacks, of which the first one is the one that counts."""
    every = [hb.set_role(setter(keras), "chief")]
    if END == "last":
        every.append(v1.train.StopAtStepHook(last_step=AT))
    if END == "sigterm":
        every.append(Sigterm(is_chief))
    if END == "hook" and is_chief:
        every.append(at_step(AT, lambda context: fail()))
    if END == "callback" and is_chief:
        every.append(failing())
    return every


def fail() -> None:
    raise ValueError("the guest fails")


def failing() -> Any:
    """A callback that fails at the end of a step."""

    def begin(self: Any, epoch: int, logs: Any = None) -> None:
        self.epoch = epoch

    def batch_end(self: Any, batch: int, logs: Any = None) -> None:
        if self.epoch * LENGTH + batch + 1 >= AT:
            fail()

    return callback_of(keras, on_epoch_begin=begin, on_train_batch_end=batch_end)


def asynchronous() -> Any:
    """Two workers and a parameter server: each worker updates alone."""
    return sync(replicas=None)


def sync(replicas: int | None = 2) -> Any:
    """Two workers and a parameter server train with `SyncReplicasOptimizer`."""
    cluster = hb.loops.SessionCluster(lost_secs=8.0)
    with cluster:
        if cluster.is_server:
            cluster.serve()
            return None
        with tf.Graph().as_default(), v1.device(cluster.device_setter()):
            weight = v1.get_variable("w", initializer=1.0)
            rate = v1.get_variable("rate", initializer=RATE, trainable=False)
            step = v1.train.get_or_create_global_step()
            batch = v1.data.make_one_shot_iterator(numbers()).get_next()
            optimizer = v1.train.GradientDescentOptimizer(rate)
            if replicas:
                optimizer = v1.train.SyncReplicasOptimizer(optimizer, replicas, 2)
            train_op = optimizer.minimize(batch * weight, step)
            own = guests(is_chief=cluster.is_chief)
            hooks = hb.as_hooks(
                own,
                steps_per_epoch=LENGTH,
                epochs=ASKED_EPOCHS,
                logs={"loss": batch * weight},
                learning_rate=rate,
            )
            if replicas:
                hooks.append(optimizer.make_session_run_hook(cluster.is_chief))
            hooks.append(NotAhead(cluster.is_chief, bool(replicas)))
            try:
                with cluster.training_session(
                    hooks, checkpoint_dir=FOLDER, save_checkpoint_steps=3
                ) as session:
                    while not session.should_stop():
                        session.run(train_op)
            finally:
                report(own[0])
    return None


def fit(strategy: Any, data: Any, **options: Any) -> None:
    """`fit` under a strategy."""
    with strategy.scope():
        model = compiled(keras)
    epoch = 0
    if tf.train.latest_checkpoint(FOLDER):
        epoch = hb.checkpoints.restore(model, FOLDER).epoch or 0
    own = guests()
    saver = v1.train.CheckpointSaverHook(FOLDER, save_steps=3)
    try:
        model.fit(
            data,
            epochs=ASKED_EPOCHS,
            initial_epoch=epoch,
            steps_per_epoch=LENGTH,
            verbose=0,
            callbacks=hb.as_callbacks([saver, *own], **options),
        )
    finally:
        report(own[0])


def numbers() -> Any:
    return tf.data.Dataset.from_tensors(0.0).repeat(BATCHES)


def zeros(context: Any = None) -> Any:
    x = np.zeros([2, 1], "float32")
    return tf.data.Dataset.from_tensors((x, x)).repeat(BATCHES)


def servers() -> None:
    fit(STRATEGY, keras.utils.experimental.DatasetCreator(zeros), max_lag=0)


def workers() -> None:
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = (
        tf.data.experimental.AutoShardPolicy.OFF
    )
    fit(tf.distribute.MultiWorkerMirroredStrategy(), zeros().with_options(options))


def report(callback: Any) -> None:
    """Notes what the callback has counted and set."""
    facts = {name: getattr(callback, name) for name in ("begins", "ends", "last_rate")}
    note("left", **facts)


if __name__ == "__main__":
    globals()[KIND]()
