"""One task of a cluster whose learning rate follows a schedule.

TF_CONFIG=... python tests/loops/clusters/rate_job.py EVENTS kind=session|fit
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "helpers"), str(HERE.parents[2])]

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from job_events import OPTIONS, note  # noqa: E402

import hookbridge as hb  # noqa: E402
from hookbridge import compat  # noqa: E402

v1 = tf.compat.v1
RATES = [0.5, 0.25, 0.25, 0.125, 1.0, 0.0625, 2.0, 0.03125]


def scheduler() -> Any:
    return hb.callbacks.LearningRateScheduler(lambda step: RATES[step])


def session() -> None:
    """One weight on the server whose gradient is -1."""
    with hb.loops.SessionCluster(lost_secs=8) as cluster:
        if cluster.is_server:
            cluster.serve()
            return
        with tf.Graph().as_default(), v1.device(cluster.device_setter()):
            weight = v1.get_variable("weight", [], initializer=v1.zeros_initializer())
            step = v1.train.get_or_create_global_step()
            optimizer = v1.train.GradientDescentOptimizer(9.0)
            train_op = optimizer.minimize(-weight, step)
            hooks = [*hb.as_hooks(scheduler()), v1.train.StopAtStepHook(len(RATES))]
            with cluster.training_session(hooks) as opened:
                while not opened.should_stop():
                    opened.run(train_op)
                    # Runs no hooks: reads the weight that the server has now.
                    value = opened._tf_sess().run(weight)
                    note("weight", value=float(value), device=weight.device)


def fit() -> None:
    """The same weight, with two workers."""
    strategy = hb.loops.parameter_server_strategy()
    name = "tf_keras" if compat.tf_version() > (2, 15) else "keras"
    keras = importlib.import_module(name)
    with strategy.scope():
        model = keras.Sequential(
            [
                keras.Input([1]),
                keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros"),
            ]
        )
        model.compile(keras.optimizers.SGD(9.0), loss=lambda y_true, y_pred: -y_pred)
    ones = np.ones([4, 1], "float32")
    data = tf.data.Dataset.from_tensors((ones, ones)).repeat()
    model.fit(
        data,
        epochs=2,
        steps_per_epoch=len(RATES) // 2,
        verbose=0,
        callbacks=hb.as_callbacks([scheduler()]),
    )
    (kernel,) = model.trainable_variables
    note("weight", value=float(kernel.numpy()[0, 0]), device=kernel.device)


if __name__ == "__main__":
    fit() if OPTIONS["kind"] == "fit" else session()
