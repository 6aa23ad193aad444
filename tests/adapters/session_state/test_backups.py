"""A job with checkpoints and a `BackupAndRestore` goes on from the newer one, whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf
from callback_recorder import counting

import hookbridge as hb

ONE_KERAS = True

v1: Any = tf.compat.v1
LENGTH, LAST, KILLED = 4, 16, 10  # the last backup before that is of step 8


def train(
    keras: Any, folder: Path, save_steps: int, kill_at: int | None = None
) -> tuple[Any, float]:
    """Trains to `LAST`, or until it is killed; returns the counts and the weight."""
    count = counting(keras)
    guests = [count, keras.callbacks.BackupAndRestore(str(folder / "backup"))]
    with tf.Graph().as_default():
        weight = v1.get_variable("w", initializer=0.0)
        step = v1.train.get_or_create_global_step()
        loss = (weight - 1.0) ** 2
        train_op = v1.train.MomentumOptimizer(0.01, 0.9).minimize(loss, step)
        hooks = hb.as_hooks(
            [*guests, v1.train.StopAtStepHook(last_step=LAST)],
            steps_per_epoch=LENGTH,
            logs={"loss": loss},
        )
        try:
            with v1.train.MonitoredTrainingSession(
                hooks=hooks,
                checkpoint_dir=str(folder),
                save_checkpoint_steps=save_steps,
                save_summaries_steps=0,
                log_step_count_steps=None,
            ) as session:
                runs = 0
                while not session.should_stop():
                    if runs == kill_at:
                        raise KeyboardInterrupt
                    session.run(train_op)
                    runs += 1
        except KeyboardInterrupt:
            pass
    newest = tf.train.latest_checkpoint(str(folder))
    return (count.batches, count.epochs), float(tf.train.load_variable(newest, "w"))


@pytest.mark.parametrize("save_steps", [3, 4, 100])
def test_the_newer_one_decides(
    keras: Any, save_steps: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Checkpoints are of the steps 9, 8 and 0 when the job is killed."""
    whole = train(keras, tmp_path / "whole", 100)
    assert whole[0] == (LAST, LAST // LENGTH)
    train(keras, tmp_path / "parts", save_steps, KILLED)
    with caplog.at_level("WARNING"):
        assert train(keras, tmp_path / "parts", save_steps) == whole
    by_backup = "goes on from the backup" in caplog.text
    assert by_backup is (save_steps == 100)
    assert ("goes on from the checkpoint" in caplog.text) is not by_backup
