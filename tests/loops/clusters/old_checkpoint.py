"""A checkpoint that plain TensorFlow writes for the model of `session_job.py`."""

from __future__ import annotations

from pathlib import Path

import tensorflow as tf

v1 = tf.compat.v1
OLD_STEP = 7


def write_checkpoint(folder: Path) -> list[str]:
    """Writes the checkpoint of step `OLD_STEP`; returns the names of its variables."""
    with tf.Graph().as_default():
        slope = v1.get_variable("slope", [], initializer=v1.zeros_initializer())
        offset = v1.get_variable("offset", [], initializer=v1.zeros_initializer())
        step = v1.train.get_or_create_global_step()
        loss = (slope * 2.0 + offset - 1.0) ** 2
        v1.train.AdamOptimizer(0.01).minimize(loss, global_step=step)
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            session.run(step.assign(OLD_STEP))
            path = str(folder / "model.ckpt")
            v1.train.Saver().save(session, path, global_step=OLD_STEP)
    return variables(folder)


def variables(folder: Path) -> list[str]:
    """The names of the variables of the newest checkpoint."""
    return [name for name, _ in tf.train.list_variables(str(folder))]
