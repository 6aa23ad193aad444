"""Copies of converted guests, and callbacks of no Keras, in both loops."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import tensorflow as tf
from hook_fetching import X, run_loop, sequential

import hookbridge as hb

v1: Any = tf.compat.v1
BATCHES = len(X) // 8
Copying = Callable[[Any], Any]


class Counting(v1.train.SessionRunHook):  # type: ignore[misc]
    runs = 0

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self.runs += 1


class Bare:
    """The methods of a callback, with Keras's older names for batches."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def set_params(self, params: Any) -> None:
        self.events.append(f"params {sorted(params)[:1]}")

    def set_model(self, model: Any) -> None:
        self.events.append("model")

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self.events.append(f"epoch {epoch}")

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.events.append(f"epoch {epoch} ends {sorted(logs)[:1]}")

    def on_batch_begin(self, batch: int, logs: Any = None) -> None:
        self.events.append(f"batch {batch}")

    def on_batch_end(self, batch: int, logs: Any = None) -> None:
        self.events.append(f"batch {batch} ends {sorted(logs)[:1]}")

    def on_train_begin(self, logs: Any = None) -> None:
        self.events.append("train")

    def on_train_end(self, logs: Any = None) -> None:
        self.events.append("train ends")


def pickled(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


def session(hooks: list[Any]) -> None:
    """As many steps as an epoch of `run_loop` has."""
    with tf.Graph().as_default():
        w = v1.get_variable("w", initializer=1.0)
        loss = tf.identity(w**2, name="loss")
        step = v1.train.get_or_create_global_step()
        train_op = v1.train.GradientDescentOptimizer(0.1).minimize(loss, step)
        with v1.train.SingularMonitoredSession(hooks=hooks) as running:
            for _ in range(BATCHES):
                running.run(train_op)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickled])
def test_copies_of_callbacks_run(copied: Copying, keras: Any) -> None:
    hook, bare = Counting(), Bare()
    stopping = keras.callbacks.EarlyStopping("loss")
    callbacks = hb.as_callbacks([hook, stopping, bare])
    copies = [copied(each) for each in callbacks]
    run_loop(sequential(keras), *copies)
    ours = [getattr(each, "guest", each) for each in copies]
    is_shared = copied is copy.copy
    assert [ours[0] is hook, ours[2] is bare] == [is_shared] * 2
    assert ours[0].runs == BATCHES and hook.runs == (BATCHES if is_shared else 0)
    assert len(ours[2].events) == 2 * BATCHES + 6
    run_loop(sequential(keras), *callbacks)
    assert hook.runs == (2 if is_shared else 1) * BATCHES


@pytest.mark.parametrize("hooks_on", ["runs", "steps"])
@pytest.mark.parametrize("copied", [copy.deepcopy, pickled])
def test_copies_of_hooks_run(copied: Copying, hooks_on: Any, keras: Any) -> None:
    hook, bare = Counting(), Bare()
    stopping = keras.callbacks.EarlyStopping("loss")
    options = {"steps_per_epoch": BATCHES, "epochs": 1, "hooks_on": hooks_on}
    hooks = hb.as_hooks([hook, stopping, bare], **options)
    for own in (copied(hooks), hooks):
        session(own)
        assert own[0].runs == BATCHES
        assert len(own[2].callback.events) == 2 * BATCHES + 6
    assert hook.runs == BATCHES


def test_a_callback_of_no_keras_is_called_alike(keras: Any) -> None:
    in_fit, in_session = Bare(), Bare()
    run_loop(sequential(keras), in_fit)
    session(hb.as_hooks([in_session], steps_per_epoch=BATCHES, epochs=1))
    assert [e.partition(" [")[0] for e in in_fit.events[2:]] == [
        e.partition(" [")[0] for e in in_session.events[2:]
    ]
    assert sorted(in_fit.events[:2]) == sorted(in_session.events[:2])
