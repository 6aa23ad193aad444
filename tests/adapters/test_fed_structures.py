"""Keys of a `feed_dict` that are structures, as those of recurrent states are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hook_fetching import hook_of, run_loop, sequential

import hookbridge as hb
from hookbridge.reference.recordings.recording_files import Recording

v1: Any = tf.compat.v1
train: Any = v1.train

ONE_KERAS = True


def test_a_loop_feeds_a_structure_in_each_step(keras: Any, tmp_path: Path) -> None:
    """A recorder and a callback, whose `logs` need another placeholder of it."""
    callback = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: seen.append(logs["other"])
    )
    seen: list[float] = []
    with tf.Graph().as_default():
        x = v1.placeholder_with_default(np.float32(1), [])
        y, z = (v1.placeholder(tf.float32, [], name=name) for name in ("y", "z"))
        loss = (v1.get_variable("w", initializer=2.0) - x * y) ** 2
        step = train.get_or_create_global_step()
        train_op = train.GradientDescentOptimizer(0.1).minimize(loss, step)
        logs = {"loss": loss, "other": z + 1.0}
        hooks = [
            hb.recorder(tmp_path),
            *hb.as_hooks([callback], steps_per_epoch=2, logs=logs),
        ]
        with train.MonitoredTrainingSession(hooks=hooks) as session:
            for _ in range(2):
                session.run(train_op, {(x, (y, z)): (3, [4, 5])})
    assert seen == [6.0, 6.0]
    steps = Recording(tmp_path).steps
    assert [step.loss for step in steps][:1] == [(2.0 - 12.0) ** 2]


def test_a_rate_in_a_structure_is_a_rate_that_the_loop_feeds(keras: Any) -> None:
    callback = keras.callbacks.LearningRateScheduler(lambda epoch: 0.5)
    with tf.Graph().as_default():
        rate = v1.placeholder_with_default(np.float32(0.1), [], "learning_rate")
        x = v1.placeholder(tf.float32, [])
        loss = v1.get_variable("w", initializer=2.0) * x
        step = train.get_or_create_global_step()
        train_op = train.GradientDescentOptimizer(rate).minimize(loss, step)
        hooks = hb.as_hooks([callback], steps_per_epoch=2)
        with (
            pytest.raises(hb.errors.InvalidArgumentError, match="The loop feeds"),
            train.MonitoredTrainingSession(hooks=hooks) as session,
        ):
            session.run(train_op, {(x, rate): (3, 0.2)})


def test_a_hook_feeds_a_structure_in_fit(keras: Any) -> None:
    model = sequential(keras)
    before = model.get_weights()

    def before_run(self: Any, context: Any) -> Any:
        rate = context.session.graph.get_tensor_by_name("learning_rate:0")
        return train.SessionRunArgs(None, {(rate,): (0.0,)})

    run_loop(model, hook_of(before_run=before_run))
    np.testing.assert_array_equal(model.get_weights()[0], before[0])
