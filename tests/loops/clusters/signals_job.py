"""One task of a job that trains until a test disturbs it by a signal.

TF_CONFIG=... python tests/loops/clusters/signals_job.py EVENTS loop=LOOP last=STEP
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "helpers"), str(HERE.parents[2])]

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from job_notes import EVENTS, OPTIONS, note  # noqa: E402
from quick_traces import look_often  # noqa: E402

import hookbridge as hb  # noqa: E402

look_often()
HAS_TF_KERAS = importlib.util.find_spec("tf_keras") is not None
keras: Any = importlib.import_module("tf_keras") if HAS_TF_KERAS else tf.keras
v1: Any = tf.compat.v1
FOLDER = str(EVENTS.parent / "saved")
LAST = int(OPTIONS["last"])
SAVE_STEPS = 20


class Tick(v1.train.SessionRunHook):  # type: ignore[misc]
    """Notes the steps of this process and the end; a step takes a moment."""

    def begin(self) -> None:
        self.step = v1.train.get_global_step()

    def before_run(self, run_context: Any) -> Any:
        return v1.train.SessionRunArgs(self.step)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        note("step", step=int(run_values.results))
        time.sleep(0.05)

    def end(self, session: Any) -> None:
        note("end", step=int(session.run(self.step)))


def in_sessions() -> None:
    with hb.loops.SessionCluster(lost_secs=3.0) as cluster:
        if cluster.is_server:
            cluster.serve()
            return
        with tf.Graph().as_default(), v1.device(cluster.device_setter()):
            weight = v1.get_variable("weight", initializer=0.0)
            step = v1.train.get_or_create_global_step()
            optimizer = v1.train.GradientDescentOptimizer(0.1)
            train_op = optimizer.minimize((weight - 1.0) ** 2, step)
            hooks = hb.as_hooks([Tick(), v1.train.StopAtStepHook(last_step=LAST)])
            with cluster.training_session(
                hooks, checkpoint_dir=FOLDER, save_checkpoint_steps=SAVE_STEPS
            ) as session:
                while not session.should_stop():
                    session.run(train_op)


def fit(strategy: Any, data: Any, **options: Any) -> None:
    with strategy.scope():
        model = keras.Sequential([keras.layers.Dense(1, input_shape=(1,))])
        model.compile("sgd", "mse")
    guests = [
        Tick(),
        v1.train.StopAtStepHook(last_step=LAST),
        v1.train.CheckpointSaverHook(FOLDER, save_steps=SAVE_STEPS),
    ]
    model.fit(
        data,
        epochs=99,
        steps_per_epoch=40,
        verbose=0,
        callbacks=hb.as_callbacks(guests, **options),
    )


def batches(_: Any = None) -> Any:
    x = np.ones([8, 1], "float32")
    return tf.data.Dataset.from_tensor_slices((x, x)).repeat().batch(4)


def under_parameter_servers() -> None:
    strategy = hb.loops.parameter_server_strategy()
    data = keras.utils.experimental.DatasetCreator(batches)
    fit(strategy, data, max_lag=4)


def in_several_workers() -> None:
    fit(tf.distribute.MultiWorkerMirroredStrategy(), batches())


LOOPS = {
    "session": in_sessions,
    "parameter servers": under_parameter_servers,
    "several workers": in_several_workers,
}
LOOPS[OPTIONS["loop"]]()
note("done")
