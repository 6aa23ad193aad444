"""At each moment the newest checkpoint of a folder is complete, whoever writes there.

What is on the disk after each write is looked at, as a process would find it that is
started after a kill at that moment.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from callback_recorder import callback_of

import hookbridge as hb
from hookbridge.adapters.session_graph import saved
from hookbridge.adapters.state import document, rewriting, storage
from hookbridge.adapters.state.backups import Backup, newest
from hookbridge.adapters.state.files import StateFiles

ONE_KERAS = True

v1: Any = tf.compat.v1
BACKGROUND: Any = hb.checkpoints.BackgroundSaverHook
AT_ONCE: Any = v1.train.CheckpointSaverHook
LAST_STEP, LENGTH = 9, 3
Train = Callable[[Any, list[Any]], None]


def counter(keras: Any) -> Any:
    """Counts batches and ended epochs."""

    def count(self: Any, batch: int, logs: Any = None) -> None:
        self.batches += 1

    def end(self: Any, epoch: int, logs: Any = None) -> None:
        self.epochs += 1

    callback = callback_of(keras, on_train_batch_end=count, on_epoch_end=end)
    callback.batches = callback.epochs = 0
    return callback


def model_of(keras: Any) -> Any:
    """Its weight is the number of its updates."""
    layer = keras.layers.Dense(
        1, use_bias=False, kernel_initializer="zeros", name="out"
    )
    model = keras.Sequential([keras.Input([1]), layer])
    model.compile(keras.optimizers.SGD(1.0), loss=lambda y, p: -p)
    return model


def in_fit(keras: Any, guests: list[Any]) -> None:
    data = np.ones([LENGTH, 1], "float32")
    model_of(keras).fit(
        *(data, data),
        batch_size=1,
        epochs=9,
        verbose=0,
        callbacks=hb.as_callbacks(guests),
    )


def in_own_loop(keras: Any, guests: list[Any]) -> None:
    model = model_of(keras)
    (weight,) = model.trainable_variables

    @tf.function  # type: ignore[untyped-decorator]
    def step() -> Any:
        gradient = -tf.ones_like(weight)
        model.optimizer.apply_gradients([(gradient, weight)])
        return tf.reduce_sum(weight)

    with hb.loops.OwnLoop(guests, model=model, steps_per_epoch=LENGTH) as loop:
        while True:
            loop.step(step)


def in_session(keras: Any, guests: list[Any], folder: Path | None = None) -> None:
    with tf.Graph().as_default():
        weight = v1.get_variable("out/kernel", initializer=np.zeros([1, 1], "float32"))
        step = v1.train.get_or_create_global_step()
        loss = -tf.reduce_sum(weight)
        train_op = v1.train.GradientDescentOptimizer(1.0).minimize(loss, step)
        hooks = hb.as_hooks(guests, steps_per_epoch=LENGTH, logs={"loss": loss})
        with v1.train.MonitoredTrainingSession(
            hooks=hooks,
            checkpoint_dir=str(folder or "") or None,
            log_step_count_steps=None,
        ) as session:
            while not session.should_stop():
                session.run(train_op)


def copy_if_there(source: str, target: str) -> None:
    """Copies a file, unless another thread has renamed or removed it meanwhile."""
    with contextlib.suppress(FileNotFoundError):
        shutil.copy2(source, target)


class Disk:
    """Copies of a folder, taken after each write into it."""

    def __init__(self, folder: Path, copies: Path, patch: pytest.MonkeyPatch) -> None:
        self._folder, self._copies = folder, copies
        self._number = itertools.count()
        for place, name in (
            (storage, "write"),
            (saved, "write"),
            (rewriting, "begin"),
            (rewriting, "end"),
        ):
            patch.setattr(place, name, self._copying(getattr(place, name)))

    def _copying(self, write: Any) -> Any:
        def copying(*arguments: Any) -> Any:
            result = write(*arguments)
            copy = self._copies / f"{next(self._number):03d}"
            shutil.copytree(
                self._folder, copy, dirs_exist_ok=True, copy_function=copy_if_there
            )
            return result

        return copying

    def moments(self) -> list[Path]:
        return sorted(self._copies.iterdir())


def check_newest(folder: Path, *, is_end: bool, may_lack: bool = False) -> None:
    """The newest checkpoint has a state of its own step, with all events of it.

    If `may_lack`, it may lack the events of its step, and says so: a saver before the
    callbacks that writes at once.
    """
    rewriting.undo(str(folder))
    newest = tf.train.latest_checkpoint(str(folder))
    if newest is None and not is_end:
        return
    step = int(newest.rpartition("-")[2])
    here = str(folder / Path(newest).name)
    assert float(tf.train.load_variable(here, "out/kernel").item()) == step
    state = document.read(here, "hookbridge")
    (entry,) = [e for e in state.entries if "batches" in e.state or not step]
    assert state.step == step
    if may_lack and state.is_in_step:
        assert entry.state.get("batches", 0) == step - 1
        return
    assert not state.is_in_step
    batches, epochs = entry.state.get("batches", 0), entry.state.get("epochs", 0)
    assert (batches, epochs) == (step, step // LENGTH), newest


def compare(
    train: Train, keras: Any, savers: list[Any], patch: Any, tmp_path: Path
) -> None:
    folder = tmp_path / "saved"
    folder.mkdir()
    disk = Disk(folder, tmp_path / "copies", patch)
    first, *others = [
        make(str(folder), save_steps=number)
        for make, number in zip(savers, (3, 2), strict=False)
    ]
    stop = v1.train.StopAtStepHook(last_step=LAST_STEP)
    train(keras, [first, counter(keras), *others, stop])
    for moment in disk.moments():
        check_newest(moment, is_end=False, may_lack=savers[0] is AT_ONCE)
    for index in folder.glob("*.index"):
        prefix = str(index.with_suffix(""))
        step = int(prefix.rpartition("-")[2])
        state = document.read(prefix, "hookbridge")
        assert (state.step, state.is_in_step) == (step, False)
    check_newest(folder, is_end=True)


LOOPS = (in_session, in_fit, in_own_loop)


@pytest.mark.parametrize("train", LOOPS)
def test_a_background_saver_before_the_callbacks(
    keras: Any, train: Train, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    compare(train, keras, [BACKGROUND], monkeypatch, tmp_path)


@pytest.mark.exhaustive
@pytest.mark.parametrize("train", LOOPS)
@pytest.mark.parametrize(
    "savers",
    [(BACKGROUND, AT_ONCE), (AT_ONCE, BACKGROUND), (BACKGROUND, BACKGROUND)],
    ids=lambda savers: "-".join(each.__name__ for each in savers),
)
def test_two_savers(
    keras: Any,
    train: Train,
    savers: Any,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    compare(train, keras, savers, monkeypatch, tmp_path)


@pytest.mark.parametrize("with_callback", [True, False])
def test_a_saver_of_a_hooks_own_waits_for_the_thread(
    keras: Any, with_callback: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It is in no collection, and saves while the thread writes to a slow disk."""
    write, is_writing = saved.write, threading.Event()
    seen: list[bool] = []

    def slow(*arguments: Any) -> Any:
        is_writing.set()
        time.sleep(0.3)
        try:
            return write(*arguments)
        finally:
            is_writing.clear()

    class Own(v1.train.Saver):  # type: ignore[misc]
        def save(self, *args: Any, **options: Any) -> Any:
            seen.append(is_writing.is_set())
            return super().save(*args, **options)

    monkeypatch.setattr(saved, "write", slow)
    with tf.Graph().as_default():
        step = v1.train.get_or_create_global_step()
        train_op = v1.assign_add(step, 1)
        saver = Own()
        at_once = AT_ONCE(str(tmp_path), save_steps=1, saver=saver)
        guests = [BACKGROUND(str(tmp_path), save_steps=1), at_once]
        guests += [counter(keras)] if with_callback else []
        hooks = hb.as_hooks(guests, steps_per_epoch=LENGTH)
        with v1.train.SingularMonitoredSession(hooks=hooks) as session:
            for _ in range(3):
                session.run(train_op)
    assert seen and not any(seen)
    assert "save" not in vars(saver)


@pytest.mark.parametrize("in_step", [True, False])
def test_of_one_step_the_backup_with_all_events_wins(
    in_step: bool, tmp_path: Path, absl_records: Any
) -> None:
    files, checkpoint = StateFiles(), str(tmp_path / "model.ckpt-12")
    files.writer(checkpoint, 12, in_step=in_step)()
    (tmp_path / "backup").mkdir()
    (tmp_path / "backup" / "training_metadata.json").write_text("{}")
    backup = Backup(str(tmp_path / "backup"))
    files.writer(backup.prefix, 12, in_step=False)()
    wins = newest(checkpoint, 12, [backup], files)[0] is not None
    assert wins is backup.exists is in_step
    assert len(absl_records("lacks the end of that step")) == in_step


def test_an_error_in_a_step_in_which_one_of_two_hooks_saves(
    keras: Any, tmp_path: Path
) -> None:
    """An error ends the epoch: its checkpoint has the batch before that."""

    def fail(self: Any, epoch: int, logs: Any = None) -> None:
        raise ZeroDivisionError

    def fit() -> None:
        first, last = (AT_ONCE(str(tmp_path), save_steps=n) for n in (3, 2))
        failing = callback_of(keras, on_epoch_end=fail)
        in_fit(keras, [first, counter(keras), last, failing])

    with pytest.raises(ZeroDivisionError):
        fit()
    gc.collect()
    check_newest(tmp_path, is_end=True)


LEFT = (
    "model.ckpt-5.hookbridge.json",
    "model.ckpt-5.hookbridge-0123456789abcdef.npz",
    "model.ckpt-1.hookbridge.json.part",
    "model.ckpt-1.hookbridge-kept.part/file",
)
KEPT = (
    "model.ckpt-1.index",
    "model.ckpt-1.hookbridge.json",
    "model.ckpt-2.hookbridge.json",
    "model.ckpt-2",  # of the older format
    "model.ckpt-5.hookbridge.worker-0.json",  # another process removes its own
    "model.ckpt-5.other.json",
)


@pytest.mark.parametrize("train", [in_session, in_fit])
def test_states_of_checkpoints_that_were_never_finished(
    keras: Any, train: Train, tmp_path: Path
) -> None:
    for name in (*LEFT, *KEPT):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    saver = AT_ONCE(str(tmp_path), save_steps=100)

    class Looking(v1.train.SessionRunHook):  # type: ignore[misc]
        seen: set[str] | None = None

        def begin(self) -> None:
            self.seen = {str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*")}

    looking = Looking()
    stop = v1.train.StopAtStepHook(last_step=1)
    guests = [counter(keras), saver, looking, stop]
    if train is in_session:
        in_session(keras, guests, tmp_path)
    else:
        train(keras, guests)
    assert looking.seen is not None
    assert not looking.seen.intersection(LEFT)
    assert looking.seen.issuperset(KEPT)
