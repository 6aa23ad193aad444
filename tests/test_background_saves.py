"""`BackgroundSaverHook` leaves what `CheckpointSaverHook` does; training goes on.

Each host trains twice, with either hook, and what is in the folders is compared.
"""

from __future__ import annotations

import functools
import json
import os
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from estimator_models import estimators
from fork_server import ForkServer
from one_keras import one_keras

import hookbridge as hb
from hookbridge.adapters.session_graph import saved
from hookbridge.adapters.state.write_order import wait_for_writes
from hookbridge.checkpoints import value_copies
from hookbridge.jobs.loops.tasks.ports import held_ports

v1: Any = tf.compat.v1
LAST_STEP, SAVE_STEPS, LENGTH = 33, 5, 10
# The same data in each batch, since a restart may be within an epoch.
X = np.tile(np.random.RandomState(0).rand(8, 4), [LENGTH, 1]).astype("float32")
Y = X.sum(1, keepdims=True)
Guests = list[Any]


def in_session(keras: Any, folder: Path, guests: Guests) -> None:
    """A session whose callbacks assign the rate, a variable."""
    with tf.Graph().as_default():
        weight = v1.get_variable("weight", initializer=np.ones([20, 3], "float32"))
        rate = v1.get_variable("rate", initializer=0.1, trainable=False)
        loss = tf.reduce_mean((weight - 3.0) ** 2)
        step = v1.train.get_or_create_global_step()
        train_op = v1.train.AdamOptimizer(rate).minimize(loss, step)
        hooks = hb.as_hooks(
            guests, steps_per_epoch=LENGTH, logs={"loss": loss}, learning_rate=rate
        )
        with v1.train.MonitoredTrainingSession(
            checkpoint_dir=str(folder),
            save_checkpoint_steps=None,
            save_checkpoint_secs=None,
            hooks=hooks,
        ) as session:
            while not session.should_stop():
                session.run(train_op)


def in_fit(keras: Any, folder: Path, guests: Guests) -> None:
    keras.utils.set_random_seed(1)
    layers = [keras.layers.Dense(5, name="hidden"), keras.layers.Dense(1, name="out")]
    model = keras.Sequential([keras.layers.Input([4]), *layers], name="model")
    model.compile(keras.optimizers.Adam(0.1, name="adam"), "mse")
    if (folder / "checkpoint").exists():
        hb.checkpoints.restore(model, str(folder))
    model.fit(
        *(X, Y, 8),
        epochs=99,
        initial_epoch=int(model.optimizer.iterations) // LENGTH,
        shuffle=False,
        verbose=0,
        callbacks=hb.as_callbacks(guests),
    )


def in_an_estimator(keras: Any, folder: Path, guests: Guests) -> None:
    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        weight = v1.get_variable("weight", [4, 1], initializer=v1.ones_initializer())
        loss = tf.reduce_mean((features @ weight - labels) ** 2, name="loss")
        step = v1.train.get_or_create_global_step()
        train_op = v1.train.AdamOptimizer(0.1).minimize(loss, step)
        return estimators.EstimatorSpec(mode, loss=loss, train_op=train_op)

    def input_fn() -> Any:
        return tf.data.Dataset.from_tensor_slices((X, Y)).batch(8).repeat()

    hooks = hb.as_hooks(guests, steps_per_epoch=LENGTH)
    estimators.Estimator(model_fn, str(folder)).train(input_fn, hooks=hooks)


class Listener(v1.train.CheckpointSaverListener):  # type: ignore[misc]
    """Notes its events, and whether the files of the save are there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.events: list[tuple[Any, ...]] = []

    def _note(self, event: str, step: Any) -> None:
        is_there = (self._folder / f"model.ckpt-{int(step)}.index").exists()
        self.events.append((event, int(step), is_there))

    def begin(self) -> None:
        self.events.append(("begin",))

    def before_save(self, session: Any, global_step_value: Any) -> None:
        self._note("before", global_step_value)

    def after_save(self, session: Any, global_step_value: Any) -> bool | None:
        self._note("after", global_step_value)
        return None

    def end(self, session: Any, global_step_value: Any) -> None:
        self._note("end", global_step_value)


def guests_of(keras: Any, saver: Any, *more: Any) -> Guests:
    """A saver, callbacks that have a state, one of which sets the rate, and a stop."""
    return [
        saver,
        keras.callbacks.ReduceLROnPlateau(
            "loss", factor=0.5, patience=1, min_delta=1e9
        ),
        keras.callbacks.EarlyStopping("loss", patience=99),
        *more,
        v1.train.StopAtStepHook(last_step=LAST_STEP),
    ]


def left_in(folder: Path) -> dict[str, Any]:
    """What training has left: names, checkpoints and states."""
    names = {re.sub(r"tfevents.*", "tfevents", each.name) for each in folder.iterdir()}
    found: dict[str, Any] = {"names": names}
    state = tf.train.get_checkpoint_state(str(folder))
    found["kept"] = [Path(p).name for p in state.all_model_checkpoint_paths]
    for name in found["kept"]:
        reader = tf.train.load_checkpoint(str(folder / name))
        for variable in reader.get_variable_to_shape_map():
            found[f"{name} {variable}"] = reader.get_tensor(variable).tolist()
        states = json.loads((folder / f"{name}.hookbridge.json").read_text())
        found[f"state of {name}"] = states["callbacks"], states["step"]
        found[f"in step {name}"] = states["in_step"]
    return found


TRAININGS = (in_session, in_fit, in_an_estimator)


@one_keras
@pytest.mark.parametrize("train", TRAININGS)
def test_it_leaves_the_same_files(train: Any, keras: Any, tmp_path: Path) -> None:
    left, events = [], []
    make: Any
    for make in (v1.train.CheckpointSaverHook, hb.checkpoints.BackgroundSaverHook):
        folder = tmp_path / make.__name__
        listener = Listener(folder)
        saver = make(str(folder), save_steps=SAVE_STEPS, listeners=[listener])
        train(keras, folder, guests_of(keras, saver))
        left.append(left_in(folder))
        events.append(listener.events)
    assert left[0] == left[1]
    assert events[0] == events[1]
    assert len(events[0]) == 2 + 2 * 8  # at steps 0, 5, ... 30 and 33
    assert not any(value for key, value in left[0].items() if key.startswith("in step"))


class Gate:
    """Lets the thread write only while it is open."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.opened = threading.Event()
        self.writes = 0
        write = saved.write

        def waits(*arguments: Any) -> str:
            self.opened.wait()
            self.writes += 1
            return write(*arguments)

        monkeypatch.setattr(saved, "write", waits)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    gate = Gate(monkeypatch)
    yield gate
    gate.opened.set()


class At(v1.train.SessionRunHook):  # type: ignore[misc]
    """Does something after some steps, with the step after them."""

    def __init__(self, steps: dict[int, Callable[[], None]]) -> None:
        self._steps, self.count = steps, 0

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self.count += 1
        self._steps.get(self.count, lambda: None)()


@one_keras
@pytest.mark.parametrize("train", TRAININGS[:2])
def test_training_goes_on_while_files_are_written(
    train: Any, keras: Any, tmp_path: Path, gate: Gate
) -> None:
    """The checkpoint of step 30 has its values, though written four steps later."""
    folder, native = tmp_path / "background", tmp_path / "native"
    saver = v1.train.CheckpointSaverHook(str(native), save_steps=30)
    train(keras, native, guests_of(keras, saver))
    listener, seen = Listener(folder), []

    def close() -> None:
        wait_for_writes()  # the first save
        gate.opened.clear()

    def look() -> None:
        seen.append((gate.writes, listener.events[-1]))
        gate.opened.set()

    saver = hb.checkpoints.BackgroundSaverHook(
        str(folder), save_steps=30, listeners=[listener]
    )
    gate.opened.set()
    closed = At({28: close, 32: look})
    train(keras, folder, guests_of(keras, saver, closed))
    assert seen == [(1, ("before", 30, False))]
    # Its events come when the files are there, before those of the next save.
    assert listener.events[-5:] == [
        ("before", 30, False),
        ("after", 30, True),
        ("before", 33, False),
        ("after", 33, True),
        ("end", 33, True),
    ]
    for step in (30, 33):
        ours, theirs = (
            tf.train.load_checkpoint(str(f / f"model.ckpt-{step}"))
            for f in (folder, native)
        )
        for name in theirs.get_variable_to_shape_map():
            np.testing.assert_array_equal(
                ours.get_tensor(name), theirs.get_tensor(name), name
            )


@one_keras
@pytest.mark.parametrize("train", TRAININGS[:2])
def test_a_save_is_written_once_with_what_callbacks_have_set(
    train: Any, keras: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At step 30 an epoch ends, and `ReduceLROnPlateau` sets the rate."""
    rates: dict[str, list[float]] = {}
    write = saved.write

    def noted(prefix: str, values: Any) -> str:
        path = write(prefix, values)
        reader = tf.train.load_checkpoint(path)
        (name,) = [n for n in reader.get_variable_to_shape_map() if "rate" in n]
        step = os.path.basename(prefix).partition("-")[2].partition("_")[0]
        rates.setdefault(step, []).append(float(reader.get_tensor(name)))
        return path

    monkeypatch.setattr(saved, "write", noted)
    saver = hb.checkpoints.BackgroundSaverHook(str(tmp_path), save_steps=5)
    train(keras, tmp_path, guests_of(keras, saver))
    assert {len(values) for values in rates.values()} == {1}
    assert rates["30"] < rates["25"]


def test_copies_stay_as_they_are_and_go_where_the_last_ones_were(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(value_copies, "_PART_BYTES", 2**24)
    entry, text = saved.SavedArray("a", "", "a"), saved.SavedArray("t", "", "t")
    variable = tf.Variable(np.arange(2e7))
    copies = value_copies.ValueCopies()
    addresses = []
    for number in (1, 2):
        values = {entry: variable.read_value(), text: tf.constant(["text"])}
        copied = copies.of(values)
        variable.assign_add(tf.ones([int(2e7)], tf.float64))
        expected = np.arange(2e7) + number - 1
        np.testing.assert_array_equal(np.asarray(copied[entry]), expected)
        assert copied[text] is values[text]
        addresses.append(np.asarray(copied[entry]).ctypes.data)
    assert addresses[0] == addresses[1]
    other = copies.of({entry: np.ones([int(2e7)], "float32")})[entry]
    assert other.dtype == tf.float32


@one_keras
@pytest.mark.parametrize("train", TRAININGS[:2])
def test_an_error_of_the_thread_ends_the_loop(
    train: Any, keras: Any, tmp_path: Path
) -> None:
    """A folder is in the place of a file; the checkpoints before it are whole."""
    raised: list[type] = []
    make: Any
    for make in (v1.train.CheckpointSaverHook, hb.checkpoints.BackgroundSaverHook):
        folder = tmp_path / make.__name__
        in_the_way = folder / "model.ckpt-15.index" / "file"
        block = At({12: functools.partial(in_the_way.mkdir, parents=True)})
        saver = make(str(folder), save_steps=SAVE_STEPS)
        stop = v1.train.StopAtStepHook(last_step=LAST_STEP)
        with pytest.raises(tf.errors.OpError) as caught:
            train(keras, folder, [block, saver, stop])
        raised.append(type(caught.value))
        assert 15 <= block.count <= 20
        assert tf.train.latest_checkpoint(str(folder)).endswith("model.ckpt-10")
    assert raised[0] is raised[1]


@one_keras
@pytest.mark.parametrize("train", TRAININGS[:2])
def test_a_listener_stops_the_training(train: Any, keras: Any, tmp_path: Path) -> None:
    class Stops(Listener):
        def after_save(self, session: Any, global_step_value: Any) -> bool:
            super().after_save(session, global_step_value)
            return bool(global_step_value >= 10)

    listener = Stops(tmp_path)
    saver = hb.checkpoints.BackgroundSaverHook(
        str(tmp_path), save_steps=SAVE_STEPS, listeners=[listener]
    )
    train(keras, tmp_path, guests_of(keras, saver))
    (last,) = [step for event, step, _ in listener.events[1:] if event == "end"]
    assert 10 < last <= 16


def test_values_of_parameter_servers_are_refused(tmp_path: Path) -> None:
    with held_ports(2) as (server, own):
        cluster = {"ps": [f"127.0.0.1:{server}"], "worker": [f"127.0.0.1:{own}"]}
        _, worker = [tf.distribute.Server(cluster, job, 0) for job in cluster]
    with tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            v1.get_variable("on_server", [], initializer=v1.zeros_initializer())
        with tf.device("/job:worker/task:0"):
            v1.get_variable("own", [], initializer=v1.zeros_initializer())
            v1.train.get_or_create_global_step()
        saver = hb.checkpoints.BackgroundSaverHook(str(tmp_path), save_steps=1)
        with pytest.raises(
            hb.errors.RefusedError, match="parameter servers hold some values"
        ):
            v1.train.MonitoredTrainingSession(worker.target, hooks=[saver])


PROGRAM = """
import os, signal, sys, threading, time
import tensorflow as tf
import hookbridge as hb
import test_background_saves as t
from hookbridge.adapters.session_graph import saved

keras = tf.keras
train, folder = getattr(t, sys.argv[1]), t.Path(sys.argv[2])
t.LAST_STEP, last_write, secs = int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5])
write, written = saved.write, []

def die():
    os.kill(os.getpid(), signal.SIGKILL)

def slowly(prefix, values):
    written.append(prefix)
    if len(written) == last_write:
        if not secs:
            die()
        timer = threading.Timer(secs, die)
        timer.daemon = True
        timer.start()
    # A kill meets an unfinished save often.
    time.sleep(0.03)
    return write(prefix, values)

saved.write = slowly

class Slow(tf.compat.v1.train.SessionRunHook):
    def after_run(self, run_context, run_values):
        time.sleep(0.01)

saver = hb.checkpoints.BackgroundSaverHook(str(folder), save_steps=t.SAVE_STEPS)
# The saver comes last: before the callbacks, a kill between it and them would lose the
# end of the batch, as the page on restarts says.
_, *others = t.guests_of(keras, saver, Slow())
train(keras, folder, [*others, saver])
"""


@pytest.fixture
def killed(tmp_path: Path, fork_server: ForkServer) -> Callable[..., int]:
    """Runs a training in a process that may be killed; returns its exit code."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    tests = Path(__file__).parent
    folders = (tests, tests / "helpers", tests / "adapters" / "helpers")

    def run(train: str, folder: str, death: tuple[int, float], last_step: int) -> int:
        done = fork_server.run(
            *(str(program), train, str(tmp_path / folder), str(last_step)),
            *map(str, death),
            PYTHONPATH=os.pathsep.join(map(str, folders)),
        )
        assert done.returncode in (0, -9), done.stderr
        return done.returncode

    return run


NEVER = 0, 0.0
# In which write of a process it dies, and so many seconds after the write began. The
# first death is certain, and comes after a whole save.
DEATHS = [(2, 0.0), (3, 0.01), (2, 0.04), (1, 0.07), (2, 0.1)]


def compare_checkpoint(ours: dict[str, Any], theirs: dict[str, Any], name: str) -> None:
    """Compares variables and state of a checkpoint in what two trainings have left."""
    keys = [key for key in theirs if name in key]
    assert len(keys) > 3 and keys == [key for key in ours if name in key]
    for key in keys:
        if key.startswith(("state", "in step")):
            assert ours[key] == theirs[key], key
        else:
            np.testing.assert_allclose(ours[key], theirs[key], rtol=1e-6, err_msg=key)


@pytest.mark.slow
def test_session_killed_in_saves(tmp_path: Path, killed: Callable[..., int]) -> None:
    """Killed again and again, the training ends as an undisturbed one."""
    assert killed("in_session", "whole", NEVER, LAST_STEP) == 0
    codes = [killed("in_session", "killed", death, LAST_STEP) for death in DEATHS]
    if codes[-1]:
        assert killed("in_session", "killed", NEVER, LAST_STEP) == 0
    assert -9 in codes
    whole, parts = (left_in(tmp_path / each) for each in ("whole", "killed"))
    compare_checkpoint(parts, whole, f"model.ckpt-{LAST_STEP}")


@pytest.mark.slow
def test_fit_killed_in_a_save(tmp_path: Path, killed: Callable[..., int]) -> None:
    """Each checkpoint that is left is that of an undisturbed training.

    Unless its state says that the callbacks had not had all of the step. A `fit` that
    goes on in mid-epoch has other epochs, so it is not compared to its end.
    """
    last_step = 18  # all checkpoints are kept
    assert killed("in_fit", "whole", NEVER, last_step) == 0
    whole = left_in(tmp_path / "whole")
    codes, compared = [], 0
    for number, death in enumerate(DEATHS):
        folder = f"killed-{number}"
        codes.append(killed("in_fit", folder, death, last_step))
        if not (tmp_path / folder / "checkpoint").exists():
            continue
        parts = left_in(tmp_path / folder)
        for name in parts["kept"]:
            if not parts[f"in step {name}"]:
                compare_checkpoint(parts, whole, name)
                compared += 1
    assert -9 in codes and compared
