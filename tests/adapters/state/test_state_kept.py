"""State belongs to its checkpoint, whenever a process is killed."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from absl import logging
from callback_loops import STEPS, session_loop

import hookbridge as hb
from hookbridge.adapters.session_loop.worker_checkpoints import WorkerCheckpoints
from hookbridge.adapters.state import arrays as array_files
from hookbridge.adapters.state import codec, storage
from hookbridge.adapters.state.files import CallbackState

v1: Any = tf.compat.v1


def patient(keras: Any) -> Any:
    return keras.callbacks.EarlyStopping("loss", min_delta=1e6, patience=50)


def options(folder: Path, every: int = 1) -> dict[str, Any]:
    saves = {"checkpoint_dir": str(folder), "save_checkpoint_steps": every}
    return {"session_options": saves, "validate": False, "epochs": 20}


def document(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    return found


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> Any:
    logging.get_absl_logger().addHandler(caplog.handler)
    yield lambda text: [r for r in caplog.records if text in r.getMessage()]
    logging.get_absl_logger().removeHandler(caplog.handler)


# --- found by the checkpoint it stands beside ----------------------------------------


def test_state_of_another_step_than_its_checkpoint(keras: Any, tmp_path: Path) -> None:
    """Other workers move the step on between the chief's step and its checkpoint."""
    session_loop([patient(keras)], max_steps=7, **options(tmp_path))
    path = tmp_path / "model.ckpt-7.hookbridge.json"
    state = document(path)
    state["step"] = 6
    state["loop"]["epoch_logs"] = {"loss": [0.0, 0.0], "mae": [0.0, 0.0]}
    path.write_text(json.dumps(state))
    stopping = patient(keras)
    session_loop([stopping], max_steps=1, **options(tmp_path))
    whole = patient(keras)
    session_loop([whole], max_steps=8)
    assert stopping.wait == whole.wait > 0


def test_epoch_that_others_have_ended_is_ended_after_a_restart(
    keras: Any, tmp_path: Path
) -> None:
    session_loop([patient(keras)], max_steps=2 * STEPS, **options(tmp_path))
    path = tmp_path / f"model.ckpt-{2 * STEPS}.hookbridge.json"
    state = document(path)
    # As it is before the events of the epoch's last step.
    state["step"] = 2 * STEPS - 1
    state["loop"]["epoch_logs"] = {"loss": [8.0, 2.0], "mae": [1.0, 1.0]}
    state["callbacks"][0]["state"]["wait"] = 5
    path.write_text(json.dumps(state))
    seen: list[Any] = []

    class Ends(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            seen.append(("begin", epoch))

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            seen.append(("end", epoch, logs["loss"]))

    stopping = patient(keras)
    session_loop([stopping, Ends()], max_steps=1, **options(tmp_path))
    assert seen[:3] == [("begin", 1), ("end", 1, 4.0), ("begin", 2)]
    assert stopping.wait == 7  # and the epoch that this run has begun


# --- no checkpoint without a state -------------------------------------------------


class Killed(BaseException):
    """Ends a run as SIGKILL would: no `end` of any hook is called."""


def test_killed_in_the_events_after_a_checkpoint(keras: Any, tmp_path: Path) -> None:
    class Kills(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            if epoch == 2:
                raise Killed

    with pytest.raises(Killed):
        session_loop([Kills(), patient(keras)], **options(tmp_path))
    latest = tf.train.latest_checkpoint(str(tmp_path))
    assert latest.endswith(f"-{3 * STEPS}")
    stopping, whole = patient(keras), patient(keras)
    session_loop(
        [keras.callbacks.Callback(), stopping], max_steps=1, **options(tmp_path)
    )
    session_loop([whole], max_steps=3 * STEPS + 1)
    assert stopping.wait == whole.wait > 1


def test_state_is_there_before_its_checkpoint(
    keras: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[tuple[bool, bool]] = []
    save = v1.train.Saver.save

    def spied(
        self: Any, session: Any, path: str, global_step: Any = None, **kw: Any
    ) -> Any:
        prefix = f"{path}-{global_step}"
        state, index = (
            os.path.exists(prefix + s) for s in (".hookbridge.json", ".index")
        )
        found.append((state, index))
        return save(self, session, path, global_step, **kw)

    monkeypatch.setattr(v1.train.Saver, "save", spied)
    session_loop([patient(keras)], max_steps=4, **options(tmp_path))
    # The saver's hook saves the initial values before any callback knows a session.
    assert found[0] == (False, False)
    assert found[1:] and set(found[1:]) == {(True, False)}
    assert (tmp_path / "model.ckpt-0.hookbridge.json").exists()


def test_checkpoint_without_state_is_reported(
    keras: Any, tmp_path: Path, said: Any
) -> None:
    session_loop([patient(keras)], max_steps=4, **options(tmp_path))
    assert not said("has no state of callbacks")
    (tmp_path / "model.ckpt-4.hookbridge.json").unlink()
    session_loop([patient(keras)], max_steps=1, **options(tmp_path))
    assert said("model.ckpt-4 has no state of callbacks")


# --- JSON and arrays belong together ---------------------------------------------


class Holds:
    """Callbacks of one process whose arrays can be looked at."""

    def __init__(self, keras: Any) -> None:
        class Holder(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
            def __init__(self) -> None:
                super().__init__()
                self.kept = np.zeros(3)

            def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
                self.kept = self.kept + 1

        self.callback: Any = Holder()
        self.state = CallbackState([self.callback], lambda: None)


def test_killed_between_arrays_and_json(
    keras: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix = str(tmp_path / "model.ckpt-3")
    one = Holds(keras)
    one.callback.kept = np.full(3, 1.0)
    one.state.save(prefix, 3)
    write = storage.write

    def killed(path: str, data: bytes) -> None:
        if path.endswith(".json"):
            raise Killed
        write(path, data)

    one.callback.kept = np.full(3, 2.0)
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(storage, "write", killed)
        one.state.save(prefix, 3)
    two = Holds(keras)
    assert two.state.restore(prefix) is not None
    np.testing.assert_array_equal(two.callback.kept, np.full(3, 1.0))
    one.state.save(prefix, 3)
    three = Holds(keras)
    three.state.restore(prefix)
    np.testing.assert_array_equal(three.callback.kept, np.full(3, 2.0))
    assert len(list(tmp_path.glob("*.npz"))) == 1  # old arrays go


def test_arrays_of_another_state_are_refused(
    keras: Any, tmp_path: Path, said: Any
) -> None:
    prefix = str(tmp_path / "model.ckpt-3")
    one = Holds(keras)
    one.callback.kept = np.full(3, 1.0)
    one.state.save(prefix, 3)
    (path,) = tmp_path.glob("*.npz")
    path.write_bytes(array_files.to_bytes({"a0": np.full(3, 9.0)}))
    two = Holds(keras)
    assert two.state.restore(prefix) is None
    np.testing.assert_array_equal(two.callback.kept, np.zeros(3))
    assert said("its arrays are those of another state")


def test_files_of_version_1_are_read(keras: Any, tmp_path: Path) -> None:
    prefix = str(tmp_path / "model.ckpt-3")
    state = {"kept": {"__array__": "a0"}}
    (tmp_path / "model.ckpt-3.hookbridge.json").write_text(
        json.dumps(
            {
                "version": 1,
                "step": 3,
                "callbacks": [{"class": "Holder", "state": state}],
                "loop": None,
            }
        )
    )
    np.savez(tmp_path / "model.ckpt-3.hookbridge.npz", a0=np.full(3, 4.0))
    one = Holds(keras)
    assert one.state.restore(prefix) is not None
    np.testing.assert_array_equal(one.callback.kept, np.full(3, 4.0))


# --- only what was stored is read, only what is ours is removed ---------------------


def test_clean_up_takes_names_exactly(keras: Any, tmp_path: Path) -> None:
    mine, other = tmp_path / "r*", tmp_path / "run1"
    for folder in (mine, other):
        folder.mkdir()
        (folder / "model.ckpt-1.hookbridge.json").write_text("{}")
    kept = ("model.ckpt-1x.hookbridge.json", "xmodel.ckpt-1.hookbridge.json")
    for name in kept:
        (mine / name).write_text("{}")
    Holds(keras).state.save(str(mine / "model.ckpt-2"), 2)
    assert (other / "model.ckpt-1.hookbridge.json").exists()
    assert sorted(p.name for p in mine.iterdir()) == sorted(
        [*kept, "model.ckpt-2.hookbridge.json"]
    )


def test_crafted_file_sets_no_configuration(keras: Any, tmp_path: Path) -> None:
    class Runs(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.cmd, self.path, self.phase, self.count = "ls", None, "warm", 0

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            self.count += 1
            self.phase = "decay"
            self.found = 3  # is not there before

    crafted = {
        "cmd": "rm -r /",
        "path": "/etc/passwd",
        "model": "x",
        "params": {},
        "on_epoch_end": 3,
        "set_model": [1],
        "new": "x",
        "__class__": 1,
        "phase": "decay",
        "count": 4,
        "found": 3,
    }
    path = tmp_path / "model.ckpt-3.hookbridge.json"
    entries = [{"class": "Runs", "state": crafted}]
    path.write_text(
        json.dumps({"version": 2, "step": 3, "callbacks": entries, "loop": None})
    )
    callback = Runs()
    before = dict(vars(callback))
    CallbackState([callback], lambda: None).restore(str(tmp_path / "model.ckpt-3"))
    changed = {k: v for k, v in vars(callback).items() if before.get(k) != v}
    assert changed == {"phase": "decay", "count": 4, "found": 3}
    # What is restored is what is stored.
    stored = codec.storable(callback).keys()
    assert stored >= changed.keys() and not stored & {"cmd", "path", "model", "new"}


def test_array_file_that_claims_more_than_it_has(tmp_path: Path) -> None:
    good = array_files.to_bytes({"a0": np.arange(3.0)})
    np.testing.assert_array_equal(
        array_files.from_bytes(good, ["a0"])["a0"], np.arange(3.0)
    )
    path = tmp_path / "bomb.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a0.npy", bytes(10**7))
    with pytest.raises(ValueError, match="larger than its file"):
        array_files.from_bytes(path.read_bytes(), ["a0"])
    header = good.replace(b"(3,)", b"(9,)")
    with pytest.raises((ValueError, zipfile.BadZipFile)):
        array_files.from_bytes(header, ["a0"])


def test_state_that_is_far_larger_than_its_checkpoint(
    keras: Any, tmp_path: Path, said: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hookbridge.adapters.state.files._MOST_BYTES", 100)
    prefix = str(tmp_path / "model.ckpt-3")
    Holds(keras).state.save(prefix, 3)
    with open(f"{prefix}.hookbridge.json", "a") as file:
        file.write(" " * 200)
    assert Holds(keras).state.restore(prefix) is None
    assert said("at most 100 are expected")


def test_part_file_follows_no_link(tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_text("precious")
    path = tmp_path / "model.ckpt-3.hookbridge.json"
    (tmp_path / (path.name + ".part")).symlink_to(target)
    storage.write(str(path), b"{}")
    assert target.read_text() == "precious"
    assert path.read_text() == "{}" and not path.is_symlink()


# --- one object, several runs -------------------------------------------------------


def test_live_object_keeps_what_it_has_counted(keras: Any, tmp_path: Path) -> None:
    class Counts(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.begins = self.ends = self.batches = 0

        def on_train_begin(self, logs: Any = None) -> None:
            self.begins += 1

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            self.batches += 1

        def on_train_end(self, logs: Any = None) -> None:
            self.ends += 1

    counts, stopping = Counts(), patient(keras)
    for _ in range(5):
        session_loop([counts, stopping], max_steps=STEPS, **options(tmp_path, 100))
    assert (counts.begins, counts.ends, counts.batches) == (5, 5, 5 * STEPS)
    # Keras's own callbacks begin anew in `on_train_begin`, and go on all the same.
    whole = patient(keras)
    session_loop([whole], max_steps=5 * STEPS, epochs=20)
    assert stopping.wait == whole.wait
    # A new object has what was saved; an older checkpoint takes the object back.
    fresh = Counts()
    session_loop([fresh, patient(keras)], max_steps=1, **options(tmp_path, 100))
    assert fresh.batches == 5 * STEPS + 1


# --- workers --------------------------------------------------------------------------


def config(kind: str, index: int) -> str:
    cluster = {"chief": ["h:1"], "worker": ["h:2", "h:4"], "ps": ["h:3"]}
    return json.dumps({"cluster": cluster, "task": {"type": kind, "index": index}})


def worker_run(
    keras: Any, folder: Path, step: int, runs: int, stopping: Any, between: Any = None
) -> list[float]:
    """A worker's part of a job; returns the learning rate of each epoch.

    Args:
      keras: of the callbacks.
      folder: where the chief saves.
      step: the global step that the worker finds.
      runs: how many steps it makes.
      stopping: a callback beside others.
      between: is called after each step.
    """
    rates: list[float] = []

    class Reads(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            rates.append(float(np.asarray(self.model.optimizer.learning_rate)))

    reduce = keras.callbacks.ReduceLROnPlateau(
        "loss", min_delta=1e6, patience=1, factor=0.5, min_lr=0.0
    )
    with tf.Graph().as_default():
        counter = v1.train.get_or_create_global_step()
        weight = v1.get_variable("weight", initializer=1.0)
        loss = tf.identity(weight * weight, name="loss")
        train_op = v1.train.GradientDescentOptimizer(0.1).minimize(loss, counter)
        hooks = hb.as_hooks([reduce, stopping, Reads()], steps_per_epoch=2)
        with MonitoredTrainingSession(str(folder), counter, step, hooks) as session:
            for number in range(runs):
                session.run(train_op)
                if between is not None:
                    between(number)
    return rates


def MonitoredTrainingSession(
    checkpoint_dir: str, counter: Any, step: int, hooks: Any
) -> Any:
    """As TensorFlow's of a worker: it restores nothing, and finds a global step.

    Its name and first argument are where a worker's `checkpoint_dir` is read.
    """

    def init(scaffold: Any, session: Any) -> None:
        session.run(counter.initializer, {counter.initializer.inputs[1]: step})

    scaffold = v1.train.Scaffold(init_fn=init)
    return v1.train.MonitoredSession(v1.train.ChiefSessionCreator(scaffold), hooks)


def test_worker_goes_on_with_its_own_state(
    keras: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: Any
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
    (rate,) = state["loop"]["learning_rates"].values()
    assert again[0] == pytest.approx(rate) and rate < 0.1
    # Another worker has no state there, and the chief has none to take over.
    monkeypatch.setenv("TF_CONFIG", config("worker", 1))
    assert worker_run(keras, tmp_path, 7, 1, patient(keras))[0] == pytest.approx(0.1)


def test_worker_without_a_state_of_its_own_takes_the_chiefs(
    keras: Any, tmp_path: Path
) -> None:
    """It was killed after the chief's checkpoint and before its own state."""
    chief, worker = Holds(keras), Holds(keras)
    mine = CallbackState([worker.callback], lambda: None, task="worker-0")
    mine.save(str(tmp_path / "model.ckpt-1"), 1)
    (tmp_path / "model.ckpt-1.index").touch()
    chief.callback.kept = np.full(3, 5.0)
    chief.state.save(str(tmp_path / "model.ckpt-2"), 2)
    prefix = str(tmp_path / "model.ckpt-2")
    assert not mine.exists(prefix)
    assert mine.restore(prefix, of_task="") is not None
    np.testing.assert_array_equal(worker.callback.kept, np.full(3, 5.0))


def test_worker_looks_at_the_directory_of_the_chief(tmp_path: Path) -> None:
    seen = WorkerCheckpoints(str(tmp_path))
    assert seen.newest() is None and seen.new() is None
    prefix = tmp_path / "model.ckpt-2"
    (tmp_path / "model.ckpt-2.index").touch()
    v1.train.update_checkpoint_state(str(tmp_path), str(prefix))
    assert seen.new() == str(prefix)
    assert seen.new() is None
