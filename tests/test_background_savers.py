"""`BackgroundSaverHook` with savers and variables of all kinds, as the native hook."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import hookbridge as hb
from hookbridge.adapters.session_graph import saved
from hookbridge.adapters.state.write_order import wait_for_writes

v1: Any = tf.compat.v1
MAKES = (v1.train.CheckpointSaverHook, hb.checkpoints.BackgroundSaverHook)
SAVERS: dict[str, dict[str, Any]] = {
    "padded": {"pad_step_number": True},
    "in_one_file": {"write_version": 1},
    "keeps_two": {"max_to_keep": 2},
    "sharded": {"sharded": True},
}


def variables(options: dict[str, Any]) -> None:
    """One of each kind of value that a checkpoint may have."""
    if options == SAVERS["in_one_file"]:
        return  # that format has few types
    for dtype in (tf.bool, tf.complex64, tf.bfloat16, tf.half, tf.uint8, tf.int64):
        v1.get_variable(dtype.name, initializer=tf.cast([0, 1, 2], dtype))
    v1.get_variable("text", initializer=np.array(["a", "bc"]))
    v1.get_variable("empty", initializer=np.zeros([0, 3], "float32"))
    quantized = tf.quantization.quantize([0.0, 1.0], 0.0, 1.0, tf.qint8)[0]
    v1.get_variable("quantized", initializer=quantized, use_resource=False)


def train(
    hooks: list[Any],
    last_step: int = 7,
    fails_at: int = 0,
    before_failing: Callable[[], None] = lambda: None,
) -> None:
    """A session with variables of many kinds, and a callback that has a state."""
    with tf.Graph().as_default():
        step = v1.train.get_or_create_global_step()
        rate = v1.get_variable("rate", initializer=0.5)
        train_op = v1.assign_add(step, 1)
        callback = hb.as_hooks(
            [tf.keras.callbacks.EarlyStopping("loss", patience=99)],
            steps_per_epoch=2,
            logs={"loss": rate},
        )
        stop = v1.train.StopAtStepHook(last_step=last_step)
        with v1.train.MonitoredSession(hooks=[*hooks, *callback, stop]) as session:
            while not session.should_stop():
                if fails_at and session.run(step) == fails_at:
                    before_failing()
                    raise RuntimeError("in the loop")
                session.run(train_op)


def hook_in_graph(make: Any, folder: Path, options: dict[str, Any]) -> Any:
    """The hook as a subclass that has a saver of the graph that it begins in."""

    def begin(self: Any) -> None:
        variables(options)
        self._saver = v1.train.Saver(v1.global_variables(), **options)
        v1.add_to_collection(v1.GraphKeys.SAVERS, self._saver)
        make.begin(self)

    kind: Any = type(make.__name__, (make,), {"begin": begin})
    return kind(str(folder), save_steps=3)


def left_in(folder: Path) -> dict[str, Any]:
    """Names of files, and the newest checkpoint's values."""
    found: dict[str, Any] = {
        "names": {p.name for p in folder.iterdir() if "tfevents" not in p.name}
    }
    newest = tf.train.latest_checkpoint(str(folder))
    reader = v1.train.NewCheckpointReader(newest)
    for name, dtype in reader.get_variable_to_dtype_map().items():
        found[name] = dtype, repr(reader.get_tensor(name))
    return found


@pytest.mark.parametrize("kind", SAVERS)
def test_savers_of_all_kinds(kind: str, tmp_path: Path) -> None:
    left = []
    for make in MAKES:
        train([hook_in_graph(make, tmp_path / make.__name__, SAVERS[kind])])
        left.append(left_in(tmp_path / make.__name__))
    assert left[0] == left[1]
    assert ("quantized" in left[0]) is (kind != "in_one_file")


def test_two_hooks_with_one_saver(tmp_path: Path) -> None:
    left = []
    for make in MAKES:
        folders = [tmp_path / make.__name__ / name for name in ("one", "two")]
        first = hook_in_graph(make, folders[0], {"max_to_keep": 3})
        second = make(str(folders[1]), save_steps=1)
        train([first, second], last_step=12)
        left.append([left_in(folder) for folder in folders])
    assert left[0] == left[1]


def test_the_run_after_an_error_reads_what_the_thread_still_wrote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, slow = saved.write, threading.Event()

    def slowly(*arguments: Any) -> str:
        slow.wait(1.0)
        return write(*arguments)

    monkeypatch.setattr(saved, "write", slowly)
    with pytest.raises(RuntimeError, match="in the loop"):
        train([hook_in_graph(MAKES[1], tmp_path, {})], fails_at=4)
    with tf.Graph().as_default():
        v1.train.get_or_create_global_step()
        hook_in_graph(MAKES[1], tmp_path / "next", {}).begin()
    assert tf.train.latest_checkpoint(str(tmp_path)).endswith("model.ckpt-3")


def test_an_error_of_the_thread_is_told_though_the_loop_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, absl_records: Any
) -> None:
    write, raised = saved.write, threading.Event()

    def fails(path: str, *arguments: Any) -> str:
        if not path.endswith("-3"):
            return write(path, *arguments)
        raised.wait()
        raise OSError("the disk is full")

    monkeypatch.setattr(saved, "write", fails)
    with pytest.raises(RuntimeError, match="in the loop"):
        hooks = [hook_in_graph(MAKES[1], tmp_path, {})]
        train(hooks, fails_at=4, before_failing=raised.set)
    wait_for_writes()
    assert len(absl_records("could not be written: the disk is full")) == 1
