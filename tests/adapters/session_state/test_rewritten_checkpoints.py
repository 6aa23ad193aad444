"""A job that is killed while it writes a checkpoint again goes on as undisturbed."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from callback_loops import until_stop
from callback_recorder import callback_of

import hookbridge as hb

ONE_KERAS = True

v1: Any = tf.compat.v1
LENGTH, EPOCHS = 4, 3


class Ending:
    """A saver in whose save number `at` the job ends.

    Then the new values are there, with the index of before or with the new one, and
    the state of callbacks is as before.
    """

    def __init__(self, saver: Any, at: int | None, part: str) -> None:
        self._saver, self._at, self._part = saver, at, part
        self._saves = itertools.count()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._saver, name)

    def save(self, session: Any, path: str, global_step: Any, **options: Any) -> Any:
        number = next(self._saves)
        index = Path(f"{path}-{int(global_step)}.index")
        before = index.read_bytes() if index.exists() else b""
        prefix = self._saver.save(session, path, global_step=global_step, **options)
        if number == self._at:
            if self._part == "values":
                index.unlink()  # a new file, as TensorFlow writes it
                index.write_bytes(before)
            raise KeyboardInterrupt
        return prefix


def halving(keras: Any) -> Any:
    """Halves the rate at each epoch's end."""

    def halve(self: Any, epoch: int, logs: Any = None) -> None:
        rate = self.model.optimizer.learning_rate
        rate.assign(float(np.asarray(rate)) / 2)

    return callback_of(keras, on_epoch_end=halve)


def train(keras: Any, folder: Path, at: int | None, part: str) -> None:
    """A session whose saver stands before the callbacks."""
    with tf.Graph().as_default():
        weight = v1.get_variable("weight", initializer=np.ones([20], "float32"))
        rate = v1.get_variable("rate", initializer=0.1, trainable=False)
        loss = tf.reduce_mean((weight - 3.0) ** 2)
        step = v1.train.get_or_create_global_step()
        train_op = v1.train.GradientDescentOptimizer(rate).minimize(loss, step)
        hooks = hb.as_hooks(
            [halving(keras)],
            steps_per_epoch=LENGTH,
            epochs=EPOCHS,
            logs={"loss": loss},
            learning_rate=rate,
        )
        saver = Ending(v1.train.Saver(), at, part)
        v1.add_to_collection(v1.GraphKeys.SAVERS, saver)
        until_stop(
            hooks,
            train_op,
            checkpoint_dir=str(folder),
            save_checkpoint_steps=LENGTH,
            scaffold=v1.train.Scaffold(saver=saver),
        )


class EndingHook(v1.train.CheckpointSaverHook):  # type: ignore[misc]
    """Saves by an `Ending`."""

    def __init__(self, folder: Path, at: int | None, part: str) -> None:
        super().__init__(str(folder), save_steps=LENGTH)
        self._ends = at, part
        self._ending: Ending | None = None

    def _get_saver(self) -> Any:
        if self._ending is None:
            self._ending = Ending(super()._get_saver(), *self._ends)
        return self._ending


def fit(keras: Any, folder: Path, at: int | None, part: str) -> None:
    """A `fit` whose saver stands before the callbacks."""
    keras.utils.set_random_seed(1)
    layer = keras.layers.Dense(1, kernel_initializer="ones", name="out")
    model = keras.Sequential([keras.Input([3]), layer])
    model.compile(keras.optimizers.SGD(0.1), "mse")
    begin = 0
    if (folder / "checkpoint").exists():
        begin = hb.checkpoints.restore(model, str(folder)).epoch or 0
    saver = EndingHook(folder, at, part)
    model.fit(
        *(np.ones([LENGTH, 3], "float32"), np.zeros([LENGTH, 1], "float32"), 1),
        epochs=EPOCHS,
        initial_epoch=begin,
        verbose=0,
        callbacks=hb.as_callbacks([saver, halving(keras)]),
    )


def values_in(folder: Path) -> dict[str, Any]:
    reader = tf.train.load_checkpoint(str(folder))
    return {n: reader.get_tensor(n) for n in reader.get_variable_to_shape_map()}


@pytest.mark.parametrize("part", ["values", "checkpoint"])
@pytest.mark.parametrize("run", [train, fit])
def test_a_job_that_ends_in_a_rewriting(
    keras: Any, tmp_path: Path, run: Any, part: str, absl_records: Any
) -> None:
    run(keras, tmp_path / "whole", None, part)
    # It saves at the begin, after the first epoch, and again with the rate.
    with pytest.raises(KeyboardInterrupt):
        run(keras, tmp_path / "parts", 2, part)
    assert len(list((tmp_path / "parts").glob("*.hookbridge-kept"))) == 1
    run(keras, tmp_path / "parts", None, part)
    whole, parts = values_in(tmp_path / "whole"), values_in(tmp_path / "parts")
    if run is train:
        assert whole["rate"] == pytest.approx(0.1 / 2**EPOCHS)
        # In `fit` the interrupted epoch has no end, as the page on restarts says.
        for name, value in whole.items():
            np.testing.assert_allclose(parts[name], value, rtol=1e-6, err_msg=name)
    assert len(absl_records("while it wrote the checkpoint")) == 1
    assert not list((tmp_path / "parts").glob("*.hookbridge-kept*"))
