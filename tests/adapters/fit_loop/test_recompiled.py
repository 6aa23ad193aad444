"""A callback gives the model another optimizer in mid-fit, as in fine-tuning.

What hooks read, feed and save is that of the optimizer with which the step trains, as
in a native `fit`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hook_fetching import hook_of, rate_hook

import hookbridge as hb

v1: Any = tf.compat.v1
train: Any = v1.train
X = np.ones([16, 2], "float32")


def model_of(keras: Any, optimizer: Any, **options: Any) -> Any:
    first = keras.layers.Dense(2, use_bias=False, kernel_initializer="ones", name="a")
    last = keras.layers.Dense(1, use_bias=False, kernel_initializer="ones", name="b")
    model = keras.Sequential([keras.Input((2,)), first, last])
    model.compile(optimizer, "mse", **options)
    return model


def change_of(keras: Any, change: Callable[[Any], None]) -> Any:
    """A callback that changes the model before its second epoch."""

    class Change(keras.callbacks.Callback):  # type: ignore[misc]
        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            if epoch == 1:
                change(self.model)

    return Change()


def fit(model: Any, *guests: Any, epochs: int = 2) -> list[Any]:
    """Trains two steps in each epoch; returns the weights."""
    model.fit(
        X,
        X[:, :1],
        batch_size=8,
        epochs=epochs,
        verbose=0,
        callbacks=hb.as_callbacks(list(guests)),
    )
    return [np.asarray(weight) for weight in model.get_weights()]


def recompiled(optimizer: Callable[[], Any]) -> Callable[[Any], None]:
    def change(model: Any) -> None:
        model.compile(optimizer(), "mse")
        model.make_train_function(force=True)

    return change


def halved(keras: Any) -> Any:
    return keras.optimizers.schedules.ExponentialDecay(0.2, 1, 0.5)


KINDS: dict[str, tuple[Callable[[Any], Any], list[float]]] = {
    "constant": (lambda keras: keras.optimizers.Adam(0.25), [0.25, 0.25]),
    "scheduled": (lambda keras: keras.optimizers.SGD(halved(keras)), [0.2, 0.1]),
}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(a, b, marks=[pytest.mark.exhaustive] * (a == b))
        for a in KINDS
        for b in KINDS
    ],
)
def test_rates_are_those_in_force(keras: Any, before: str, after: str) -> None:
    (first, seen_first), (second, seen_second) = KINDS[before], KINDS[after]
    change = recompiled(lambda: second(keras))
    expected = fit(model_of(keras, first(keras)), change_of(keras, change))
    hook = rate_hook()
    weights = fit(model_of(keras, first(keras)), change_of(keras, change), hook)
    np.testing.assert_allclose(hook.seen, [*seen_first, *seen_second], 1e-6)
    for seen, wanted in zip(weights, expected, strict=True):
        np.testing.assert_allclose(seen, wanted, 1e-6)
    model = model_of(keras, first(keras))
    for weight in fit(model, change_of(keras, change), rate_hook(feed=0.0)):
        np.testing.assert_array_equal(weight, np.ones_like(weight))


@pytest.mark.parametrize("background", [False, True])
def test_a_checkpoint_has_the_optimizer_in_force(
    keras: Any, background: bool, tmp_path: Path
) -> None:
    def unfreeze(model: Any) -> None:
        model.layers[0].trainable = True
        recompiled(lambda: keras.optimizers.Adam(0.1))(model)

    def frozen() -> Any:
        model = model_of(keras, keras.optimizers.SGD(0.1))
        model.layers[0].trainable = False
        model.compile(keras.optimizers.SGD(0.1), "mse")
        return model

    expected = fit(frozen(), change_of(keras, unfreeze), epochs=3)
    native = train.CheckpointSaverHook
    make = hb.checkpoints.BackgroundSaverHook if background else native
    saver = make(str(tmp_path), save_steps=4)
    fit(frozen(), change_of(keras, unfreeze), saver)
    model = model_of(keras, keras.optimizers.Adam(0.1))
    report = hb.checkpoints.restore(model, str(tmp_path))
    assert report.global_step == 4
    assert int(np.asarray(model.optimizer.iterations)) == 2
    for seen, wanted in zip(fit(model, epochs=1), expected, strict=True):
        np.testing.assert_allclose(seen, wanted, 1e-6)


def test_a_saver_of_a_hook_cannot_save_another_optimizer(
    keras: Any, tmp_path: Path
) -> None:
    hook = hook_of(begin=lambda self: v1.get_variable("own", initializer=1.0))
    saver = train.CheckpointSaverHook(str(tmp_path), save_steps=4)
    change = recompiled(lambda: keras.optimizers.Adam(0.1))
    model = model_of(keras, keras.optimizers.SGD(0.1))
    with pytest.raises(hb.errors.LiveSessionError, match="a callback has replaced"):
        fit(model, change_of(keras, change), hook, saver)


def test_an_optimizer_that_is_set_trains_once_the_step_is_made_anew(keras: Any) -> None:
    def replace(model: Any) -> None:
        model.optimizer = keras.optimizers.SGD(0.5)

    def replace_and_make(model: Any) -> None:
        replace(model)
        model.make_train_function(force=True)

    for change, eagerly, later in (
        (replace, False, 0.1),
        (replace, True, 0.5),
        (replace_and_make, False, 0.5),
    ):
        new = [
            model_of(keras, keras.optimizers.SGD(0.1), run_eagerly=eagerly)
            for _ in range(2)
        ]
        expected = fit(new[0], change_of(keras, change))
        # Fetched in the second epoch for the first time, so traced after the change.
        hook, late = rate_hook(), hook_of(before_run=_from_third_step())
        weights = fit(new[1], change_of(keras, change), hook, late)
        np.testing.assert_allclose(hook.seen, [0.1, 0.1, later, later], 1e-6)
        for seen, wanted in zip(weights, expected, strict=True):
            np.testing.assert_allclose(seen, wanted, 1e-6)


def _from_third_step() -> Any:
    calls: list[int] = []

    def before_run(self: Any, context: Any) -> Any:
        calls.append(1)
        return train.SessionRunArgs("loss:0") if len(calls) > 2 else None

    return before_run


def test_steps_are_counted_on(keras: Any) -> None:
    model = model_of(keras, keras.optimizers.SGD(0.1))
    change = recompiled(lambda: keras.optimizers.Adam(0.1))
    fit(model, change_of(keras, change), rate_hook())
    hook = rate_hook()
    fit(model, hook, train.StopAtStepHook(last_step=7), epochs=3)
    assert hook.seen == [pytest.approx(0.1)] * 3
