"""One run of the training of `moment_hosts` in a cluster; the chief notes what it has.

    TF_CONFIG=... python tests/adapters/session_state/moment_job.py EVENTS \
        kind=sync|servers|workers dir=FOLDER [last=STEP] [sigterm=STEP]

`last` stops the run by a hook, `sigterm` by a signal that the chief gets in that step.
"""

from __future__ import annotations

import importlib.util
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

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from job_notes import OPTIONS, note  # noqa: E402
from moment_hosts import EPOCHS, LENGTH, RATE, compiled, setter  # noqa: E402
from quick_traces import look_often  # noqa: E402

import hookbridge as hb  # noqa: E402

look_often()
HAS_TF_KERAS = importlib.util.find_spec("tf_keras") is not None
keras: Any = importlib.import_module("tf_keras") if HAS_TF_KERAS else tf.keras
v1: Any = tf.compat.v1
FOLDER = OPTIONS["dir"]


class Sigterm(v1.train.SessionRunHook):  # type: ignore[misc]
    """Sends SIGTERM to the process of the chief after a step; makes all steps slow."""

    def __init__(self, is_chief: bool) -> None:
        self.runs, self.sends_in = 0, int(OPTIONS["sigterm"]) if is_chief else 0

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self.runs += 1
        if self.runs == self.sends_in:
            os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.2)


def guests(*, is_chief: bool = True) -> list[Any]:
    """The callbacks, of which the first one is the one that counts."""
    every = [hb.set_role(setter(keras), "chief")]
    if "last" in OPTIONS:
        every.append(v1.train.StopAtStepHook(last_step=int(OPTIONS["last"])))
    if "sigterm" in OPTIONS:
        every.append(Sigterm(is_chief))
    return every


def sync() -> Any:
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
            optimizer = v1.train.GradientDescentOptimizer(rate)
            optimizer = v1.train.SyncReplicasOptimizer(optimizer, 2, 2)
            train_op = optimizer.minimize(0.0 * weight, step)
            own = guests(is_chief=cluster.is_chief)
            hooks = hb.as_hooks(
                own,
                steps_per_epoch=LENGTH,
                epochs=EPOCHS,
                logs={"loss": 0.0 * weight},
                learning_rate=rate,
            )
            hooks.append(optimizer.make_session_run_hook(cluster.is_chief))
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
            epochs=EPOCHS,
            initial_epoch=epoch,
            steps_per_epoch=LENGTH,
            verbose=0,
            callbacks=hb.as_callbacks([saver, *own], **options),
        )
    finally:
        report(own[0])


def zeros(context: Any = None) -> Any:
    x = np.zeros([2, 1], "float32")
    return tf.data.Dataset.from_tensors((x, x)).repeat()


def servers() -> None:
    strategy = hb.loops.parameter_server_strategy()
    fit(strategy, keras.utils.experimental.DatasetCreator(zeros), max_lag=0)


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
    globals()[OPTIONS["kind"]]()
