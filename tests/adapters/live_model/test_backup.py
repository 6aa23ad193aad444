"""`BackupAndRestore` keeps more of a session than its weights."""

from __future__ import annotations

import itertools
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from callback_loops import STEPS, session_loop
from callback_recorder import callback_of, noting

ONE_KERAS = True

v1 = tf.compat.v1
DIES_AT = 2 * STEPS + 2
NUMBERED = ("on_epoch_begin",)


def dies(keras: Any, at: int = DIES_AT) -> Any:
    """Ends a run without any `end`, as a kill does."""

    steps = itertools.count(1)

    def die(self: Any, batch: int, logs: Any) -> None:
        if next(steps) == at:
            raise KeyboardInterrupt

    return callback_of(keras, on_train_batch_begin=die)


def rate_variable() -> Any:
    return v1.get_variable("lr", initializer=0.1, trainable=False)


@pytest.mark.parametrize("rate", ["constant", "variable"])
def test_optimizer_and_learning_rate_are_restored(
    keras: Any, tmp_path: Path, rate: str
) -> None:
    c = keras.callbacks
    folder = str(tmp_path / "backup")

    def run(*callbacks: Any) -> Any:
        # Each epoch's rate depends on that of the epoch before.
        halves = c.LearningRateScheduler(lambda epoch, lr: lr * 0.5)
        return session_loop(
            [*callbacks, halves],
            optimizer=v1.train.AdamOptimizer,
            rate=0.1 if rate == "constant" else rate_variable,
            validate=False,
        )

    whole = run()
    with pytest.raises(KeyboardInterrupt):
        run(c.BackupAndRestore(folder), dies(keras))
    again = run(c.BackupAndRestore(folder))
    assert len(again.history["loss"]) == 2
    assert again.steps == whole.steps
    for ours, theirs in zip(again.weights, whole.weights, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)
    for key, values in again.history.items():
        np.testing.assert_allclose(values, whole.history[key][2:], rtol=1e-5)
    assert not Path(folder).exists() or not list(Path(folder).rglob("*.h5"))


def test_batches_are_backed_up_too(keras2: Any, tmp_path: Path) -> None:
    """Two epochs, and the first two batches of the third one."""
    whole = session_loop([keras2.callbacks.Callback()], validate=False)
    epochs: list[int] = []
    for at in (2 * STEPS + 3, 10**6):
        backup = keras2.callbacks.BackupAndRestore(str(tmp_path / "b"), save_freq=2)
        notes = noting(keras2, lambda _, event, n, *__: epochs.append(n), NUMBERED)
        with pytest.raises(KeyboardInterrupt) if at < 100 else nullcontext():
            again = session_loop([backup, dies(keras2, at), notes], validate=False)
            assert again.steps == 4 * STEPS
    assert epochs == [0, 1, 2, 2, 3]
    np.testing.assert_allclose(again.weights[0], whole.weights[0], rtol=1e-5)


def test_a_backup_without_some_variables_is_reported(
    keras: Any, tmp_path: Path, said: Any
) -> None:
    def run(*guests: Any, **options: Any) -> int:
        backup = keras.callbacks.BackupAndRestore(str(tmp_path / "backup"))
        return session_loop([backup, *guests], validate=False, **options).steps

    with pytest.raises(KeyboardInterrupt):
        run(dies(keras))
    path = tmp_path / "backup" / "latest.weights.h5"
    if not path.exists():  # Keras 2 writes a checkpoint of the whole session
        assert list(path.parent.rglob("*.index"))
        return
    assert run(optimizer=v1.train.AdamOptimizer) == 4 * STEPS
    assert "dense/kernel/Adam_1" in said(str(path))[0].getMessage()
