"""While the thread of `BackgroundSaverHook` writes: what goes on, and what ends.

`test_background_saves.py` compares what is left in the end.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from background_trainings import (
    LAST_STEP,
    SAVE_STEPS,
    TRAININGS,
    Listener,
    guests_of,
)
from one_keras import one_keras

import hookbridge as hb
from hookbridge.adapters.session_graph import saved
from hookbridge.adapters.state.write_order import wait_for_writes
from hookbridge.checkpoints import value_copies
from hookbridge.jobs.loops.tasks.ports import held_ports

v1: Any = tf.compat.v1


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
