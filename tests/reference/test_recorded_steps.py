"""What a recorder finds in a session's step: its loss, its gradients and its batch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import hookbridge as hb
from hookbridge.reference.comparison import compare
from hookbridge.reference.recordings.recording_files import Recording

v1: Any = tf.compat.v1


def test_what_was_never_reached_is_said(tmp_path: Path) -> None:
    for limit in (1e-3, 1e3):
        with tf.Graph().as_default():
            w = v1.get_variable("w", initializer=[1.0, 2.0])
            optimizer = v1.train.GradientDescentOptimizer(0.1)
            pairs = optimizer.compute_gradients(tf.reduce_sum(w**2), [w])
            clipped, _ = tf.clip_by_global_norm([g for g, _ in pairs], limit)
            step = v1.train.get_or_create_global_step()
            train_op = optimizer.apply_gradients([(clipped[0], w)], step)
            hooks = [hb.recorder(tmp_path / str(limit))]
            with v1.train.MonitoredTrainingSession(hooks=hooks) as session:
                session.run(train_op)
        notes = compare(tmp_path / str(limit), tmp_path / str(limit)).notes
        said = any(note.startswith("clipping was not exercised") for note in notes)
        assert said == (limit == 1e3)


OPTIMIZERS: dict[str, Any] = {
    "gradient descent": lambda: v1.train.GradientDescentOptimizer(0.1),
    "Adam": lambda: v1.train.AdamOptimizer(0.1),
    "Adagrad": lambda: v1.train.AdagradOptimizer(0.1),
    "momentum": lambda: v1.train.MomentumOptimizer(0.1, 0.9),
}


@pytest.mark.parametrize("clips", [False, True])
@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_gradients_of_rows(kind: str, clips: bool, tmp_path: Path) -> None:
    """They are whole, and as they were before clipping, of all optimizers."""
    with tf.Graph().as_default():
        words = v1.placeholder(tf.int32, [None, 2], "words")
        table = v1.get_variable("table", [5, 3])
        rows = tf.reduce_sum(tf.nn.embedding_lookup(table, words), [1, 2])
        loss = tf.reduce_mean((rows - 3.0) ** 2)
        optimizer = OPTIMIZERS[kind]()
        ((gradient, variable),) = optimizer.compute_gradients(loss)
        if clips:
            (gradient,), _ = tf.clip_by_global_norm([gradient], 0.01)
        train_op = optimizer.apply_gradients([(gradient, variable)])
        hooks = [hb.recorder(tmp_path)]
        fed = np.array([[1, 3], [1, 1], [0, 3]], np.int32)
        with v1.train.MonitoredTrainingSession(hooks=hooks) as session:
            for _ in range(2):
                session.run(train_op, {words: fed})
    recording = Recording(tmp_path)
    first = recording.steps[0]
    error = recording.initial["table"][fed].sum((1, 2)) - 3.0
    whole = np.zeros([5, 3])
    np.add.at(whole, fed, (error * 2 / 3)[:, None, None])
    np.testing.assert_allclose(first.arrays("gradients")["table"], whole, rtol=1e-4)
    assert first.line["gradient_norms"]["table"] > 0.01


@pytest.mark.parametrize("resource", [False, True])
def test_gradient_of_an_optimizer_that_assigns(resource: bool, tmp_path: Path) -> None:
    """As BERT's does: no update op gets the gradient, which is clipped before."""
    with tf.Graph().as_default():
        w = v1.get_variable("w", initializer=[3.0, 4.0], use_resource=resource)
        mean = v1.get_variable("mean", initializer=[0.0, 0.0], trainable=False)
        gradients = tf.gradients(tf.reduce_sum(w * w) / 2, [w])
        (clipped,), _ = tf.clip_by_global_norm(gradients, 1.0)
        moved = 0.9 * mean + 0.1 * clipped
        train_op = tf.group(
            v1.assign(w, w - 0.5 * (moved + 0.01 * w)),
            v1.assign(mean, moved),
            v1.assign_add(v1.train.get_or_create_global_step(), 1),
        )
        hooks = [hb.recorder(tmp_path)]
        with v1.train.MonitoredTrainingSession(hooks=hooks) as session:
            session.run(train_op)
    first = Recording(tmp_path).steps[0]
    np.testing.assert_allclose(first.arrays("gradients")["w"], [3.0, 4.0], rtol=1e-6)
    assert "mean" not in first.line["gradient_norms"]


def test_nothing_recorded_is_told(tmp_path: Path, absl_records: Any) -> None:
    with tf.Graph().as_default():
        v1.train.get_or_create_global_step()
        w = v1.get_variable("w", initializer=2.0)
        train_op = v1.assign(w, w - 0.1 * tf.gradients(w * w, w)[0])
        hooks = [hb.recorder(tmp_path)]
        with v1.train.MonitoredTrainingSession(hooks=hooks) as session:
            session.run(train_op)  # neither moves the global step nor is an optimizer
    assert absl_records("nothing was recorded. No run moved the global step")


def test_the_loss_is_what_is_trained(tmp_path: Path) -> None:
    """Neither a term of it that is called "loss", nor a scaled one."""

    def recorded(minimized: Any, name: str) -> float:
        with tf.Graph().as_default():
            w = v1.get_variable("w", initializer=2.0)
            loss = tf.multiply(w, w, name="loss")
            train_op = v1.train.AdamOptimizer(0.1).minimize(minimized(loss, w))
            hooks = [hb.recorder(tmp_path / name)]
            with v1.train.MonitoredTrainingSession(hooks=hooks) as session:
                session.run(train_op)
        value = Recording(tmp_path / name).steps[0].loss
        assert value is not None
        return value

    assert recorded(lambda loss, w: loss, "plain") == 4.0
    assert recorded(lambda loss, w: loss + 0.5 * w, "more") == 5.0
    assert recorded(lambda loss, w: loss * 1024.0, "scaled") == 4.0


def test_a_fed_tensor_is_the_batch(tmp_path: Path) -> None:
    """What is fed in the place of a data set's batch; nothing more is read from it."""
    with tf.Graph().as_default():
        data = tf.data.Dataset.range(3)
        x = v1.data.make_one_shot_iterator(data).get_next()
        w = v1.get_variable("w", initializer=2.0)
        loss = (w - tf.cast(x, tf.float32)) ** 2
        train_op = v1.train.GradientDescentOptimizer(0.1).minimize(loss)
        with v1.train.MonitoredTrainingSession(hooks=[hb.recorder(tmp_path)]) as s:
            for _ in range(5):
                s.run(train_op, {x: 7})
            for _ in range(3):
                s.run(train_op)
    steps = Recording(tmp_path).steps
    held = [next(iter(step.arrays("batch").values())).item() for step in steps]
    assert held == [7, 7, 7, 7, 7, 0, 1, 2]
