"""Hooks that only steps trigger, and steps that no callback looks at."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import tensorflow as tf
from callback_loops import STEPS, session_loop
from state_runs import document

import hookbridge as hb
from hookbridge import errors
from hookbridge.testing import EventLog, RecordingHook

v1 = tf.compat.v1


class Net(NamedTuple):
    """A graph whose loop fetches a batch with one run and trains with another."""

    batch: Any
    x: Any
    loss: Any
    train_op: Any


def build() -> Net:
    data = tf.data.Dataset.range(100).batch(2)
    batch = v1.data.make_one_shot_iterator(data).get_next()
    x = v1.placeholder(tf.float32, [None], name="x")
    weight = v1.get_variable("weight", initializer=1.0)
    loss = tf.reduce_mean(tf.square(weight * x - 1.0), name="loss")
    step = v1.train.get_or_create_global_step()
    train_op = v1.train.GradientDescentOptimizer(1e-4).minimize(loss, step)
    return Net(batch, x, loss, train_op)


def train(hooks: list[Any], net: Net) -> None:
    with v1.train.MonitoredSession(hooks=hooks) as session:
        for _ in range(STEPS):
            x = session.run(net.batch)
            session.run(net.train_op, {net.x: x})


def stock() -> list[Any]:
    return [
        v1.train.NanTensorHook("loss:0"),
        v1.train.LoggingTensorHook(["loss:0"], every_n_iter=1),
    ]


def test_hooks_that_need_a_batch_let_the_loop_fetch_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with tf.Graph().as_default():
        net = build()
        with pytest.raises(tf.errors.InvalidArgumentError, match="placeholder"):
            train(hb.as_hooks(stock()), net)  # as natively
    with tf.Graph().as_default():
        net = build()
        with caplog.at_level("INFO"):
            train(hb.as_hooks(stock(), hooks_on="steps"), net)
    assert caplog.text.count("loss:0 = ") == STEPS


@pytest.mark.parametrize("hooks_on", ["runs", "steps"])
def test_the_events_of_a_hook(hooks_on: Any) -> None:
    log = EventLog()
    with tf.Graph().as_default():
        hooks = hb.as_hooks(RecordingHook(log, "hook"), hooks_on=hooks_on)
        train(hooks, build())
    runs = STEPS if hooks_on == "steps" else 2 * STEPS
    assert log.counts("hook") == {
        "begin": 1,
        "after_create_session": 1,
        "before_run": runs,
        "after_run": runs,
        "end": 1,
    }


@pytest.mark.parametrize("mode", ["evaluation", "prediction"])
def test_evaluation_steps_count_and_each_run_of_a_prediction(mode: str) -> None:
    log = EventLog()
    with tf.Graph().as_default():
        data, value = tf.constant([1.0]), tf.constant(2.0)
        step = v1.get_variable("eval_step", initializer=0)
        if mode == "evaluation":
            v1.add_to_collection(v1.GraphKeys.EVAL_STEP, step)
        evaluate = [value, step.assign_add(1)]
        hooks = hb.as_hooks(RecordingHook(log, "hook"), hooks_on="steps")
        with v1.train.MonitoredSession(hooks=hooks) as session:
            session.run(data)
            session.run(evaluate)
    assert log.counts("hook")["after_run"] == (1 if mode == "evaluation" else 2)


def test_it_is_the_hook_for_whoever_asks(tmp_path: Path) -> None:
    """An Estimator looks for a `CheckpointSaverHook`, and adds listeners to it."""
    hook = v1.train.CheckpointSaverHook(str(tmp_path), save_steps=1)
    hooks = hb.as_hooks(hook, hooks_on="steps")
    assert isinstance(hooks[0], v1.train.CheckpointSaverHook)
    assert hooks[0]._listeners is hook._listeners
    assert hb.as_hooks(hooks) == hooks
    with tf.Graph().as_default():
        train(hooks, build())
    assert tf.train.latest_checkpoint(tmp_path).endswith(f"-{STEPS}")


def test_a_profile_counts_its_events() -> None:
    hook = RecordingHook(EventLog(), "hook")
    with hb.profile(hook) as profile, tf.Graph().as_default():
        train(hb.as_hooks(hook, hooks_on="steps"), build())
    rows = [line.split() for line in str(profile).splitlines()]
    assert [row[2] for row in rows if "after_run" in row] == [str(STEPS)]


def test_another_value_is_refused() -> None:
    with pytest.raises(errors.InvalidArgumentError, match="`hooks_on` is 'batches'"):
        hb.as_hooks([], hooks_on="batches")  # type: ignore[arg-type]


ONE_KERAS = True


@pytest.mark.parametrize("seed", range(4))
def test_steps_that_nobody_looks_at_count_alike(
    keras: Any, tmp_path: Path, seed: int
) -> None:
    """Random sequences of runs: restarts in mid-epoch, stops, all epochs done."""
    choice = random.Random(seed)
    runs: list[dict[str, Any]] = [
        {
            "max_steps": choice.randint(1, 2 * STEPS),
            "save_every": choice.randint(1, STEPS),
            "stops_at": choice.choice([None, None, 1, 3]),
        }
        for _ in range(choice.randint(2, 4))
    ]

    class Looks(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            pass

    class Epochs(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        def __init__(self, stops_at: int | None) -> None:
            super().__init__()
            self.stops_at = stops_at
            self.seen: list[Any] = []

        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            self.seen.append(["begin", epoch])

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            self.seen.append(["end", epoch, sorted((logs or {}).items())])
            self.model.stop_training = epoch == self.stops_at

    def outcome(name: str, looks: list[Any]) -> list[Any]:
        found: list[Any] = []
        for run in runs:
            epochs, history = Epochs(run["stops_at"]), keras.callbacks.History()
            saves = {
                "checkpoint_dir": str(tmp_path / name),
                "save_checkpoint_steps": run["save_every"],
            }
            made = session_loop(
                [history, epochs, *looks],
                epochs=4,
                max_steps=run["max_steps"],
                validate=False,
                session_options=saves,
            )
            states = {
                path.name: document(path)["loops"]
                for path in (tmp_path / name).glob("*.json")
            }
            found.append(
                [made.steps, epochs.seen, history.history, states, made.weights]
            )
        return found

    plain, long = outcome("plain", []), outcome("long", [Looks()])
    for ours, theirs in zip(plain, long, strict=True):
        assert ours[:4] == theirs[:4]
        for mine, others in zip(ours[4], theirs[4], strict=True):
            np.testing.assert_array_equal(mine, others)
