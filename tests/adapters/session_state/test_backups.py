"""A job with checkpoints and a `BackupAndRestore` goes on from the newer one, whole."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import tensorflow as tf
from callback_recorder import callback_of, counting
from eager_steps import descended

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


@pytest.mark.parametrize("save_freq", ["epoch", 3])
@pytest.mark.parametrize("place", ["first", "last"])
def test_a_session_without_checkpoints_goes_on_from_its_backup(
    keras: Any, save_freq: Any, place: str, tmp_path: Path
) -> None:
    """With weights, step, epoch and state of callbacks, wherever it was saved."""

    def run(folder: str, kill_at: int | None = None) -> tuple[Any, float]:
        count = counting(keras)
        weights: list[float] = []
        backup = keras.callbacks.BackupAndRestore(
            str(tmp_path / folder), save_freq=save_freq
        )
        guests = [backup, count] if place == "first" else [count, backup]
        with tf.Graph().as_default():
            weight = v1.get_variable("w", initializer=0.0)
            step = v1.train.get_or_create_global_step()
            loss = (weight - 1.0) ** 2
            train_op = v1.train.MomentumOptimizer(0.01, 0.9).minimize(loss, step)
            with tf.control_dependencies([train_op]):
                trained = weight.read_value()
            hooks = hb.as_hooks(
                guests, steps_per_epoch=LENGTH, epochs=LAST // LENGTH, logs={"l": loss}
            )
            with v1.train.MonitoredTrainingSession(hooks=hooks) as session:
                while not session.should_stop():
                    if len(weights) == kill_at:
                        raise KeyboardInterrupt
                    weights.append(session.run(trained))
        return (count.batches, count.epochs), weights[-1]

    whole = run("whole")
    assert whole[0] == (LAST, LAST // LENGTH)
    with pytest.raises(KeyboardInterrupt):
        run("parts", KILLED)
    counts, weight = run("parts")
    assert counts == whole[0]
    assert weight == pytest.approx(whole[1])


X, Y = np.ones([LENGTH, 1], "float32"), np.ones([LENGTH, 1], "float32")


def counting_model(keras: Any) -> Any:
    """A model whose weight is the number of its steps."""
    keras.backend.clear_session()
    dense = keras.layers.Dense(
        1, use_bias=False, kernel_initializer="zeros", name="out"
    )
    model = keras.Sequential([keras.Input((1,)), dense])
    model.compile(keras.optimizers.SGD(1.0), loss=lambda y, p: -tf.reduce_mean(p))
    return model


def own_loop(keras: Any, model: Any, guests: list[Any], epoch: int) -> None:
    @tf.function  # type: ignore[untyped-decorator]
    def step(x: Any) -> Any:
        return descended(model, lambda: -tf.reduce_mean(model(x)))

    with hb.loops.OwnLoop(
        guests,
        model=model,
        steps_per_epoch=LENGTH,
        epochs=LAST // LENGTH,
        initial_epoch=epoch,
    ) as loop:
        while not loop.should_stop():
            loop.step(step, X[:1])


def fit(keras: Any, model: Any, guests: list[Any], epoch: int) -> None:
    model.fit(
        X,
        Y,
        batch_size=1,
        epochs=LAST // LENGTH,
        initial_epoch=epoch,
        verbose=0,
        callbacks=hb.as_callbacks(guests),
    )


class Case(NamedTuple):
    """What a `fit` does, and the steps that its callback and its weight have then."""

    save_steps: int
    restores: bool  # the newest checkpoint, before it begins
    is_backup_first: bool
    steps: int
    decides: str


# The backup is of step 8. From a checkpoint of step 9, a `fit` makes the whole epoch.
CASES = [
    Case(3, True, True, 17, "checkpoint"),
    Case(3, True, False, 17, "checkpoint"),
    Case(4, True, True, 16, "checkpoint"),
    Case(100, True, True, 16, "backup"),
    Case(100, True, False, 16, "backup"),
    Case(3, False, True, 16, ""),
]


@pytest.mark.parametrize("run", [fit, own_loop])
@pytest.mark.parametrize("case", CASES)
def test_one_of_them_decides_in_fit(
    keras: Any,
    run: Callable[..., None],
    case: Case,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def kill(self: Any, batch: int, logs: Any = None) -> None:
        if int(np.asarray(self.model.optimizer.iterations)) == KILLED:
            raise KeyboardInterrupt

    for is_first in (True, False):
        model, epoch, count = counting_model(keras), 0, counting(keras)
        folder = str(tmp_path / "saved")
        if case.restores and not is_first:
            step = hb.checkpoints.restore(model, folder).global_step
            assert step is not None
            epoch = step // LENGTH
        saver = v1.train.CheckpointSaverHook(folder, save_steps=case.save_steps)
        guests = [saver, count, keras.callbacks.BackupAndRestore(str(tmp_path / "b"))]
        if case.is_backup_first:
            guests.reverse()
        if is_first:
            guests.append(callback_of(keras, on_train_batch_end=kill))
        with pytest.raises(KeyboardInterrupt) if is_first else caplog.at_level("INFO"):
            run(keras, model, guests, epoch)
    epochs, weight = LAST // LENGTH, float(np.sum(model.get_weights()[0]))
    assert (count.batches, count.epochs, weight) == (case.steps, epochs, case.steps)
    newest = tf.train.latest_checkpoint(folder)
    assert int(tf.train.load_variable(newest, "global_step")) == case.steps
    for name in ("checkpoint", "backup"):
        said = f"goes on from the {name}" in caplog.text
        assert said is (case.decides == name)
    assert "Callbacks that go on: " in caplog.text
