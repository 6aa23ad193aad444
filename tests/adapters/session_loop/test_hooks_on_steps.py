"""Hooks that only steps trigger."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf
from callback_loops import STEPS

import hookbridge as hb
from hookbridge.testing import EventLog, RecordingHook

v1 = tf.compat.v1


def train(hooks: list[Any]) -> None:
    """A loop that fetches a batch with one run and trains with another."""
    data = tf.data.Dataset.range(100).batch(2)
    batch = v1.data.make_one_shot_iterator(data).get_next()
    x = v1.placeholder(tf.float32, [None], name="x")
    weight = v1.get_variable("weight", initializer=1.0)
    loss = tf.reduce_mean(tf.square(weight * x - 1.0), name="loss")
    step = v1.train.get_or_create_global_step()
    train_op = v1.train.GradientDescentOptimizer(1e-4).minimize(loss, step)
    with v1.train.MonitoredSession(hooks=hooks) as session:
        for _ in range(STEPS):
            session.run(train_op, {x: session.run(batch)})


def stock() -> list[Any]:
    return [
        v1.train.NanTensorHook("loss:0"),
        v1.train.LoggingTensorHook(["loss:0"], every_n_iter=1),
    ]


def test_hooks_that_need_a_batch_let_the_loop_fetch_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    error = pytest.raises(tf.errors.InvalidArgumentError, match="placeholder")
    with tf.Graph().as_default(), error:
        train(hb.as_hooks(stock()))  # as natively
    with tf.Graph().as_default(), caplog.at_level("INFO"):
        train(hb.as_hooks(stock(), hooks_on="steps"))
    assert caplog.text.count("loss:0 = ") == STEPS


@pytest.mark.parametrize("hooks_on", ["runs", "steps"])
def test_the_events_of_a_hook(hooks_on: Any, graph: Any) -> None:
    """A profile counts the same; the first call has a row by itself."""
    log = EventLog()
    hook = RecordingHook(log, "hook")
    with hb.profile(hook) as profile:
        train(hb.as_hooks(hook, hooks_on=hooks_on))
    runs = STEPS if hooks_on == "steps" else 2 * STEPS
    assert log.counts("hook") == {
        "begin": 1,
        "after_create_session": 1,
        "before_run": runs,
        "after_run": runs,
        "end": 1,
    }
    rows = [line.split() for line in str(profile).splitlines()]
    assert [row[2] for row in rows if "after_run" in row] == [str(runs - 1)]


@pytest.mark.parametrize(("is_evaluation", "runs"), [(True, 1), (False, 2)])
def test_evaluation_steps_count_and_each_run_of_a_prediction(
    is_evaluation: bool, runs: int, graph: Any
) -> None:
    log = EventLog()
    data, step = tf.constant([1.0]), v1.get_variable("eval_step", initializer=0)
    if is_evaluation:
        v1.add_to_collection(v1.GraphKeys.EVAL_STEP, step)
    evaluate = [data, step.assign_add(1)]
    hooks = hb.as_hooks(RecordingHook(log, "hook"), hooks_on="steps")
    with v1.train.MonitoredSession(hooks=hooks) as session:
        session.run(data)
        session.run(evaluate)
    assert log.counts("hook")["after_run"] == runs


def test_it_is_the_hook_for_whoever_asks(tmp_path: Path, graph: Any) -> None:
    """An Estimator looks for a `CheckpointSaverHook`, and adds listeners to it."""
    hook = v1.train.CheckpointSaverHook(str(tmp_path), save_steps=1)
    hooks = hb.as_hooks(hook, hooks_on="steps")
    assert isinstance(hooks[0], v1.train.CheckpointSaverHook)
    assert hooks[0]._listeners is hook._listeners
    assert hb.as_hooks(hooks) == hooks
    train(hooks)
    assert tf.train.latest_checkpoint(tmp_path).endswith(f"-{STEPS}")
