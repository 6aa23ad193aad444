"""Workers keep a state of their own beside the checkpoints of the chief."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf
from callback_loops import until_stop
from callback_recorder import callback_of
from hook_fetching import hook_of
from state_runs import Holds, document, patient, save, state_of

import hookbridge as hb

ONE_KERAS = True

v1: Any = tf.compat.v1


def config(kind: str, index: int) -> str:
    cluster = {"chief": ["h:1"], "worker": ["h:2", "h:4"], "ps": ["h:3"]}
    return json.dumps({"cluster": cluster, "task": {"type": kind, "index": index}})


def worker_run(
    keras: Any, folder: Path, step: int, runs: int, stopping: Any, between: Any = None
) -> list[float]:
    """A worker's part of a job; returns the learning rate of each epoch."""
    rates: list[float] = []

    def read(self: Any, epoch: int, logs: Any) -> None:
        rates.append(float(np.asarray(self.model.optimizer.learning_rate)))

    reads = callback_of(keras, on_epoch_begin=read)
    reduce = keras.callbacks.ReduceLROnPlateau(
        "loss", min_delta=1e6, patience=1, factor=0.5, min_lr=0.0
    )
    with tf.Graph().as_default():
        counter = v1.train.get_or_create_global_step()
        weight = v1.get_variable("weight", initializer=1.0)
        loss = tf.identity(weight * weight, name="loss")
        train_op = v1.train.GradientDescentOptimizer(0.1).minimize(loss, counter)
        hooks = hb.as_hooks([reduce, stopping, reads], steps_per_epoch=2)
        with worker_session(str(folder), counter, step, hooks) as session:
            for number in range(runs):
                session.run(train_op)
                if between is not None:
                    between(number)
    return rates


def worker_session(folder: str, counter: Any, step: int, hooks: Any) -> Any:
    """TensorFlow's session of a worker, except that no chief has to be waited for.

    It restores nothing and finds a global step.
    """

    def init(scaffold: Any, session: Any) -> None:
        session.run(counter.initializer, {counter.initializer.inputs[1]: step})

    def creator(scaffold: Any, **others: Any) -> Any:
        return v1.train.ChiefSessionCreator(scaffold)

    module = sys.modules[v1.train.MonitoredSession.__module__]
    with mock.patch.object(module, "WorkerSessionCreator", creator):
        return v1.train.MonitoredTrainingSession(
            is_chief=False,
            checkpoint_dir=folder,
            scaffold=v1.train.Scaffold(init_fn=init),
            hooks=hooks,
        )


def test_worker_goes_on_with_its_own_state(
    keras: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, absl_records: Any
) -> None:
    monkeypatch.setenv("TF_CONFIG", config("worker", 0))

    def chief_saves(number: int) -> None:
        if number == 6:
            with tf.Graph().as_default(), v1.Session() as session:
                step = v1.get_variable("x", initializer=0)
                session.run(step.initializer)
                saver = v1.train.Saver()
                saver.save(session, str(tmp_path / "model.ckpt"), global_step=7)

    first = patient(keras)
    rates = worker_run(keras, tmp_path, 0, 9, first, chief_saves)
    assert rates[0] > rates[-1]
    states = sorted(p.name for p in tmp_path.glob("*.hookbridge*.json"))
    assert states == ["model.ckpt-7.hookbridge.worker-0.json"]
    second = patient(keras)
    again = worker_run(keras, tmp_path, 7, 2, second)
    state = document(tmp_path / states[0])
    assert second.wait >= state["callbacks"][1]["state"]["wait"] > 0
    (rate,) = state["loops"][0]["learning_rates"].values()
    assert again[0] == pytest.approx(rate) and rate < 0.1
    # Another worker has no state there, and the chief has none to take over.
    monkeypatch.setenv("TF_CONFIG", config("worker", 1))
    assert worker_run(keras, tmp_path, 7, 1, patient(keras))[0] == pytest.approx(0.1)


def test_worker_without_a_state_of_its_own_takes_the_chiefs(
    keras: Any, tmp_path: Path, absl_records: Any
) -> None:
    """The worker was killed after the chief's checkpoint, before it saved its state."""
    chief, worker = Holds(keras), Holds(keras, "worker-0")
    mine = worker.state
    save(mine, str(tmp_path / "model.ckpt-1"), 1)
    (tmp_path / "model.ckpt-1.index").touch()
    prefix = str(tmp_path / "model.ckpt-2")
    chief.save(prefix, 2, 5.0)
    assert not mine.exists(prefix)
    assert worker.restore(prefix)
    np.testing.assert_array_equal(worker.callback.kept, np.full(3, 5.0))
    # A worker does not call every callback of the chief.
    assert state_of(task="worker-1").read(prefix) is not None
    assert not absl_records("no longer among the callbacks")
    assert state_of().read(prefix) is not None
    assert absl_records("no longer among the callbacks")


def test_the_first_checkpoint_of_a_restored_session_has_the_states_of_all(
    keras: Any, tmp_path: Path
) -> None:
    """It has a new name if a worker made a step while the last one was being saved."""
    found: list[list[str]] = []

    def look(self: Any, session: Any, coord: Any) -> None:
        found.append(sorted(p.name for p in tmp_path.glob("*.hookbridge*")))

    # Called after the saver's hook and before the callbacks.
    looks = hook_of(after_create_session=look)

    def job(last_step: int) -> None:
        with tf.Graph().as_default():
            step = v1.train.get_or_create_global_step()
            train_op = v1.assign_add(step, 1)
            last = v1.train.StopAtStepHook(last_step=last_step)
            holds = Holds(keras).callback
            holds.kept = np.full(3, float(last_step))
            hooks = [looks, last, *hb.as_hooks([holds], steps_per_epoch=5)]
            until_stop(
                hooks,
                train_op,
                checkpoint_dir=str(tmp_path),
                save_checkpoint_steps=100,
                save_summaries_steps=0,
                log_step_count_steps=None,
            )

    job(3)
    worker = Holds(keras, "worker-0")
    mine = worker.state
    worker.callback.kept = np.full(3, 7.0)
    save(mine, str(tmp_path / "model.ckpt-3"), 3)
    of_worker = {p.name for p in tmp_path.glob("*worker*")}
    assert len(of_worker) == 2
    for file in list(tmp_path.glob("model.ckpt-3.*")):
        file.rename(tmp_path / file.name.replace("-3.", "-2."))
    index = tmp_path / "checkpoint"
    index.write_text(index.read_text().replace("ckpt-3", "ckpt-2"))
    found.clear()
    job(5)
    (at_once,) = found
    assert of_worker < set(at_once)
    assert "model.ckpt-3.hookbridge.json" in at_once
    worker.callback.kept = None
    assert worker.restore(str(tmp_path / "model.ckpt-3"))
    np.testing.assert_array_equal(worker.callback.kept, np.full(3, 7.0))
