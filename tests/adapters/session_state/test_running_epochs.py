"""An epoch that a restart interrupts goes on with its mean, and comes once."""

from __future__ import annotations

import functools
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from callback_recorder import callback_of
from session_trainings import train_until_stop

import hookbridge as hb

v1: Any = tf.compat.v1
LENGTH, EPOCHS, FAILS_AT = 5, 2, 7
Seen = list[tuple[int, int, float]]  # epoch, batches, mean of the loss


class Failing(v1.train.SessionRunHook):  # type: ignore[misc]
    """Ends the loop by an error before the step after so many."""

    def __init__(self, steps: int) -> None:
        self._left = steps

    def before_run(self, run_context: Any) -> None:
        self._left -= 1
        if self._left < 0:
            raise ZeroDivisionError


def seeing(keras: Any, seen: Seen) -> Any:
    """A callback that notes each epoch."""

    def begin(self: Any, epoch: int, logs: Any = None) -> None:
        self.in_epoch = 0

    def count(self: Any, batch: int, logs: Any = None) -> None:
        self.in_epoch += 1

    def end(self: Any, epoch: int, logs: Any = None) -> None:
        seen.append((int(epoch), self.in_epoch, float(logs["loss"])))

    callback = callback_of(
        keras, on_epoch_begin=begin, on_train_batch_end=count, on_epoch_end=end
    )
    callback.in_epoch = 0
    return callback


def model_of(keras: Any, metrics: Any = ()) -> Any:
    """The loss of a batch is the number in it; the weight stays 1."""
    layer = keras.layers.Dense(1, use_bias=False, kernel_initializer="ones", name="out")
    model = keras.Sequential([keras.Input([1]), layer])
    model.compile(keras.optimizers.SGD(0.0), lambda y, p: p * y, metrics=list(metrics))
    return model


def began_at(model: Any, folder: Path) -> tuple[int, int]:
    """The step and the epoch at which the model goes on."""
    if not (folder / "checkpoint").exists():
        return 0, 0
    report = hb.checkpoints.restore(model, str(folder))
    return report.global_step or 0, report.epoch or 0


def in_fit(
    keras: Any,
    folder: Path,
    guests: list[Any],
    metrics: Any = (),
    length: int | None = None,
) -> Any:
    model = model_of(keras, metrics)
    step, epoch = began_at(model, folder)
    numbers = np.arange(step, 40, dtype="float32")[:, None]
    return model.fit(
        *(np.ones_like(numbers), numbers),
        batch_size=1,
        shuffle=False,
        initial_epoch=epoch,
        epochs=EPOCHS if length is None else epoch + 1,
        steps_per_epoch=length or LENGTH - step % LENGTH,
        verbose=0,
        callbacks=hb.as_callbacks(guests),
    )


def in_own_loop(keras: Any, folder: Path, guests: list[Any]) -> None:
    model = model_of(keras)
    step, epoch = began_at(model, folder)
    (weight,) = model.trainable_variables

    @tf.function  # type: ignore[untyped-decorator]
    def train_step(number: Any) -> Any:
        model.optimizer.apply_gradients([(tf.zeros_like(weight), weight)])
        return tf.reduce_sum(weight) * number

    with hb.loops.OwnLoop(
        guests,
        model=model,
        steps_per_epoch=LENGTH - step % LENGTH,
        initial_epoch=epoch,
        epochs=EPOCHS,
    ) as loop:
        for number in range(step, 40):
            loop.step(train_step, tf.constant(float(number)))


def in_session(
    keras: Any,
    folder: Path,
    guests: list[Any],
    length: int = LENGTH,
    epochs: int | None = EPOCHS,
    data: int = 100,
) -> None:
    with tf.Graph().as_default():
        weight = v1.get_variable("out/kernel", initializer=np.ones([1, 1], "float32"))
        step = v1.train.get_or_create_global_step()
        batches = v1.data.make_initializable_iterator(tf.data.Dataset.range(data))
        v1.add_to_collection(v1.GraphKeys.TABLE_INITIALIZERS, batches.initializer)
        unused = 0.0 * tf.cast(batches.get_next(), tf.float32)
        loss = tf.reduce_sum(weight) * (tf.cast(step, tf.float32) + unused)
        train_op = v1.train.GradientDescentOptimizer(0.0).minimize(loss, step)
        hooks = hb.as_hooks(
            guests, steps_per_epoch=length, epochs=epochs, logs={"loss": loss}
        )
        train_until_stop(v1.train.MonitoredTrainingSession, train_op, hooks, folder)


LOOPS: Any = (in_session, in_fit, in_own_loop)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(
            *pair,
            marks=() if pair[0] is pair[1] else pytest.mark.exhaustive,
            id="-".join(each.__name__ for each in pair),
        )
        for pair in itertools.product(LOOPS, LOOPS)
    ],
)
def test_the_mean_of_an_interrupted_epoch(
    keras: Any, first: Any, second: Any, tmp_path: Path
) -> None:
    seen: Seen = []

    def saver() -> Any:
        return v1.train.CheckpointSaverHook(str(tmp_path), save_steps=FAILS_AT)

    with pytest.raises(ZeroDivisionError):
        first(keras, tmp_path, [seeing(keras, seen), saver(), Failing(FAILS_AT)])
    second(keras, tmp_path, [seeing(keras, seen), saver()])
    means = [(epoch, mean) for epoch, _, mean in seen]
    numbers = np.arange(EPOCHS * LENGTH).reshape(EPOCHS, LENGTH)
    assert means == [(epoch, numbers[epoch].mean()) for epoch in range(EPOCHS)]


def test_metrics_of_an_interrupted_epoch_of_fit(keras: Any, tmp_path: Path) -> None:
    """Means, a root of one, and one of other variables."""

    def metrics() -> list[Any]:
        kinds = keras.metrics
        return [
            kinds.MeanAbsoluteError(name="mae"),
            kinds.RootMeanSquaredError(name="rmse"),
            kinds.R2Score(name="r2"),
        ]

    watch = functools.partial(seeing, keras, [])
    whole = in_fit(keras, tmp_path / "whole", [], metrics(), LENGTH).history
    folder = tmp_path / "parts"
    saver = v1.train.CheckpointSaverHook(str(folder), save_steps=2)
    with pytest.raises(ZeroDivisionError):
        in_fit(keras, folder, [saver, watch(), Failing(2)], metrics(), LENGTH)
    saver = v1.train.CheckpointSaverHook(str(folder), save_steps=2)
    parts = in_fit(keras, folder, [saver, watch()], metrics(), LENGTH - 2).history
    assert parts.keys() == whole.keys() and len(whole) == len(metrics()) + 1
    for name, values in whole.items():
        np.testing.assert_allclose(parts[name], values, rtol=1e-6, err_msg=name)


@pytest.mark.parametrize("middle", [in_session, in_fit])
def test_no_epoch_comes_twice(keras: Any, middle: Any, tmp_path: Path) -> None:
    """Epochs of 6 steps, the third of which ends with the data at step 16."""
    seen: Seen = []

    def guests() -> list[Any]:
        saver = v1.train.CheckpointSaverHook(str(tmp_path), save_steps=100)
        return [seeing(keras, seen), saver]

    in_session(keras, tmp_path, guests(), length=6, epochs=None, data=16)
    if middle is in_fit:
        in_fit(keras, tmp_path, guests(), length=6)
    else:
        in_session(keras, tmp_path, guests(), length=6, epochs=4)
    in_session(keras, tmp_path, guests(), length=6, epochs=6)
    epochs = [(epoch, batches) for epoch, batches, _ in seen]
    assert epochs == [(0, 6), (1, 6), (2, 4), (3, 6), (4, 6), (5, 6)]
