"""Which guest is called in which process of a cluster."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from callback_loops import STEPS, session_loop
from callback_recorder import callback_of, noting

import hookbridge as hb
from hookbridge import errors
from hookbridge.adapters.guests import roles
from hookbridge.adapters.guests.guest_record import record_of
from hookbridge.adapters.guests.skipped import SkippedCallback, SkippedHook
from hookbridge.jobs.loops.tasks.ports import held_ports
from hookbridge.testing import EventLog, RecordingCallback, RecordingHook

ONE_KERAS = True


def tf_config(kind: str, index: int = 0) -> str:
    cluster = {"chief": ["h:1"], "worker": ["h:2", "h:3"], "ps": ["h:4"]}
    return json.dumps({"cluster": cluster, "task": {"type": kind, "index": index}})


PLACES = {
    "local": None,
    "chief": tf_config("chief"),
    "worker": tf_config("worker", 1),
    "evaluator": tf_config("evaluator"),
}
RUNS: dict[roles.Role, tuple[str, ...]] = {
    "split": ("local", "chief", "worker", "evaluator"),
    "chief": ("local", "chief", "evaluator"),
    "worker": ("local", "chief", "worker"),
    "evaluator": ("local", "evaluator"),
    "all": ("local", "chief", "worker", "evaluator"),
}


def place(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = PLACES[name]
    if text is None:
        monkeypatch.delenv("TF_CONFIG", raising=False)
    else:
        monkeypatch.setenv("TF_CONFIG", text)


def role_of(guest: Any) -> roles.Role:
    return record_of(guest).role


def model_of(keras: Any) -> Any:
    model = keras.Sequential([keras.layers.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    return model


X = np.zeros((4, 2), "float32")
ENDS = ("on_train_begin", "on_train_end")


@pytest.mark.parametrize("name", sorted(PLACES))
def test_a_guest_runs_where_its_role_says(
    name: str, keras: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place(name, monkeypatch)
    for role in roles.ROLES:
        assert roles.runs_here(role) is (name in RUNS[role])
    log = EventLog()
    free = RecordingHook(log, "free")
    chief = hb.set_role(RecordingHook(log, "chief"), "chief")
    hooks = hb.as_hooks([free, chief])
    assert hooks[0] is free
    assert (hooks[1] is chief) is (name != "worker")
    assert hb.as_hooks(hooks) == hooks
    with tf.Graph().as_default():
        one = tf.constant(1)
        with tf.compat.v1.train.MonitoredSession(hooks=hooks) as session:
            session.run(one)
    assert bool(log.of("chief")) is (name != "worker")
    assert log.counts("free")["after_run"] == 1

    # In `fit` callbacks go by the role that they were given.
    log = EventLog()
    given = [*roles.ROLES, None]
    guests = [
        noting(keras, lambda _, event, logs, r=role: log.add(str(r), event), ENDS)
        for role in given
    ]
    for role, guest in zip(roles.ROLES, guests, strict=False):
        hb.set_role(guest, role)
    callbacks = hb.as_callbacks(guests)
    assert hb.as_callbacks(callbacks) == callbacks
    for set_role, guest, callback in zip(given, guests, callbacks, strict=True):
        # A Keras 3 callback is wrapped where Keras 2 is in the process too.
        called = getattr(callback, "__wrapped__", callback)
        assert (called is guest) is (set_role is None or name in RUNS[set_role])
    logger = keras.callbacks.CSVLogger(str(tmp_path / "log.csv"))
    callbacks += hb.as_callbacks(logger)
    model_of(keras).fit(X, X[:, :1], verbose=0, callbacks=callbacks)
    for role in roles.ROLES:
        assert bool(log.of(role)) is (name in RUNS[role])
    assert len(log.of("None")) == 2
    assert (tmp_path / "log.csv").exists()


def test_defaults_and_roles_that_are_set(
    subtests: pytest.Subtests, keras: Any, tmp_path: Path
) -> None:
    c, folder = keras.callbacks, str(tmp_path)
    saver = tf.compat.v1.train.CheckpointSaverHook(folder, save_steps=1)
    for guest, role in (
        (saver, "all"),
        (c.CSVLogger(f"{folder}/x.csv"), "chief"),
        (c.EarlyStopping("val_loss"), "chief"),
        (c.EarlyStopping("loss"), "split"),
        (c.LambdaCallback(), "split"),
    ):
        with subtests.test(str(guest)):
            assert role_of(guest) == role
    (of_chief,) = hb.explain(saver, host="fit").guests
    assert "under `MultiWorkerMirroredStrategy`, the chief" in of_chief.runs_on
    (of_all,) = hb.explain(hb.set_role(saver, "all"), host="fit").guests
    assert of_all.runs_on == roles.MEANING["all"]
    callback = c.EarlyStopping("loss")
    assert hb.set_role(callback, "chief") is callback
    (hook,) = hb.as_hooks(callback, steps_per_epoch=STEPS)
    assert hook.role == "chief"
    hook.role = "all"  # that hook only
    assert role_of(callback) == "chief"
    with pytest.raises(errors.InvalidArgumentError, match="'chief', 'worker'"):
        hook.role = "some"


def test_what_is_skipped_says_so_once(
    subtests: pytest.Subtests,
    keras: Any,
    monkeypatch: pytest.MonkeyPatch,
    caplog: Any,
    absl_records: Any,
) -> None:
    place("worker", monkeypatch)
    caplog.set_level("INFO", logger="absl")
    hook = hb.set_role(tf.compat.v1.train.StopAtStepHook(3), "chief")
    callback = hb.set_role(keras.callbacks.EarlyStopping("loss"), "chief")
    (skipped_hook,), skipped = hb.as_hooks(hook), hb.as_callbacks(callback)
    assert isinstance(skipped_hook, SkippedHook)
    for _ in range(2):
        skipped_hook.begin()
        skipped[0].set_model(None)
    for name in ("StopAtStepHook", "EarlyStopping"):
        with subtests.test(str(name)):
            lines = {
                id(r): r.getMessage()
                for r in absl_records(f"`{name}` has the role 'chief'")
            }
            (line,) = lines.values()
            assert "this process is the worker and skips it" in line
    # A callback that `fit` skips is itself elsewhere.
    (of_session,) = hb.as_hooks(skipped, steps_per_epoch=STEPS)
    assert of_session.callback is callback and of_session.role == "chief"
    assert hb.explain(skipped, "fit") == hb.explain(callback, "fit")


def test_one_more_callback_where_several_processes_call_fit(
    keras: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does nothing in a `fit` of this process alone."""
    task = {"type": "worker", "index": 1}
    config = {"cluster": {"worker": ["h:1", "h:2"]}, "task": task}
    monkeypatch.setenv("TF_CONFIG", json.dumps(config))
    log = EventLog()
    callbacks = hb.as_callbacks(RecordingHook(log))
    assert len(callbacks) == len(hb.as_callbacks(callbacks)) == 2
    model_of(keras).fit(X, X[:, :1], verbose=0, callbacks=callbacks)
    assert log.counts("RecordingHook")["end"] == 1


def test_a_guest_has_one_stand_in_at_most(
    keras: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even where steps are scheduled elsewhere and the role excludes the process."""
    place("worker", monkeypatch)
    log = EventLog()
    guests = [RecordingHook(log, "hook"), RecordingCallback(log, "callback")]
    skipped = hb.as_callbacks([hb.set_role(g, "chief") for g in guests], max_lag=3)
    for guest, each in zip(guests, skipped, strict=True):
        assert isinstance(each, SkippedCallback) and each.guest is guest
    functions = []
    notes = callback_of(
        keras,
        on_train_batch_end=lambda self, batch, logs: functions.append(
            self.model.train_function
        ),
    )
    model = model_of(keras)
    model.fit(X, X[:, :1], verbose=0, callbacks=[notes])
    model.fit(X, X[:, :1], verbose=0, callbacks=[*skipped, notes])
    assert functions[0] is functions[1]  # a hook that is not called costs no step
    assert not log.of("hook") and not log.of("callback")


EPOCHS = 4


@pytest.mark.parametrize("name", ["local", "chief", "worker"])
def test_a_callback_is_split_between_worker_and_chief(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place(name, monkeypatch)
    log = EventLog()
    session_loop([RecordingCallback(log)], epochs=EPOCHS)
    counts = log.counts("RecordingCallback")
    assert counts["on_epoch_end"] == EPOCHS
    assert counts["on_train_batch_end"] == EPOCHS * STEPS
    assert counts["on_train_begin"] == 1
    elsewhere = name == "worker"
    assert counts.get("on_test_end", 0) == (0 if elsewhere else EPOCHS)
    assert bool(counts.get("on_test_batch_end")) is not elsewhere
    assert counts.get("on_train_end", 0) == (0 if elsewhere else 1)
    logs = log.logs("RecordingCallback", "on_epoch_end")
    assert ["val_loss" in each for each in logs] == [not elsewhere] * EPOCHS
    if elsewhere:  # one for all processes sees everything in each
        log = EventLog()
        session_loop([hb.set_role(RecordingCallback(log), "all")], epochs=EPOCHS)
        counts = log.counts("RecordingCallback")
        assert (counts["on_test_end"], counts["on_train_end"]) == (EPOCHS, 1)


@pytest.fixture(scope="module")
def servers() -> Any:
    """A parameter server and a worker, TensorFlow's own, in this process."""
    with held_ports(2) as (server, worker):
        spec = {"ps": [f"localhost:{server}"], "worker": [f"localhost:{worker}"]}
        return [tf.distribute.Server(spec, job_name=job, task_index=0) for job in spec]


@pytest.mark.parametrize("name", ["chief", "worker"])
def test_what_workers_share_is_set_by_the_chief_alone(
    name: str, servers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    place(name, monkeypatch)
    v1 = tf.compat.v1

    def halve(self: Any, epoch: int, logs: Any = None) -> None:
        rate = self.model.optimizer.learning_rate
        self.model.optimizer.learning_rate = float(rate) / 2

    with tf.Graph().as_default():
        with v1.device("/job:ps/task:0"):
            rate = v1.get_variable("learning_rate", initializer=0.4)
            weight = v1.get_variable("weight", initializer=1.0)
            step = v1.train.get_or_create_global_step()
        train_op = v1.train.GradientDescentOptimizer(rate).minimize(weight**2, step)
        halves = callback_of(tf.keras, on_epoch_end=halve)
        hooks = hb.as_hooks(halves, steps_per_epoch=1, logs={"loss": weight})
        with v1.train.MonitoredTrainingSession(
            servers[1].target, hooks=hooks
        ) as session:
            session.run(train_op)
            assert session.run(rate) == pytest.approx(0.2 if name == "chief" else 0.4)


@pytest.mark.parametrize("guest", ["CSVLogger", "History"])
def test_a_server_of_the_programs_own_is_no_task_that_is_known(
    guest: str,
    servers: Any,
    tmp_path: Path,
    absl_records: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place("local", monkeypatch)
    v1, callbacks = tf.compat.v1, tf.keras.callbacks
    with tf.Graph().as_default():
        weight = v1.get_variable("weight", initializer=1.0)
        step = v1.train.get_or_create_global_step()
        train_op = v1.train.GradientDescentOptimizer(0.1).minimize(weight**2, step)
        made = callbacks.CSVLogger(str(tmp_path / "log.csv"))
        guests = [made] if guest == "CSVLogger" else [callbacks.History()]
        hooks = hb.as_hooks(guests, steps_per_epoch=1, logs={"loss": weight})
        with v1.train.MonitoredTrainingSession(
            servers[1].target, is_chief=True, hooks=hooks
        ) as session:
            session.run(train_op)
    warned = absl_records(
        "So it also calls `CSVLogger`, which only the chief should call"
    )
    assert bool(warned) == (guest == "CSVLogger")


def test_bad_roles(keras: Any) -> None:
    hook = tf.compat.v1.train.StopAtStepHook(3)
    with pytest.raises(errors.InvalidArgumentError, match="`role` is 'boss'"):
        hb.set_role(hook, "boss")  # type: ignore[arg-type]
    with pytest.raises(errors.InvalidArgumentError, match="for the hook `StopAtStep"):
        hb.set_role(hook, "split")
    with pytest.raises(errors.NotAGuestError):
        hb.set_role(3, "chief")
