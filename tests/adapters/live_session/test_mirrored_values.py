"""What hooks read under `MirroredStrategy`: the whole loss, else the first replica."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hook_fetching import Fetch, X, Y
from hook_hosts import mirrored

from hookbridge.adapters.hook_to_callback import HookToCallback

v1: Any = tf.compat.v1

BATCH, HALF = 8, 4


def model_of(keras: Any, base: Any = None, **compile_args: Any) -> Any:
    with mirrored().scope():
        model = (base or keras.Sequential)(
            [
                keras.Input((4,)),
                keras.layers.Dense(5, activation="relu", name="hidden"),
                keras.layers.Dense(1, name="out"),
            ]
        )
        model.compile(keras.optimizers.SGD(0.0), "mse", **compile_args)
    return model


def run(model: Any, *names: str, mode: str = "fit") -> Fetch:
    hook = Fetch(*names)
    arguments = {"shuffle": False} if mode == "fit" else {}
    getattr(model, mode)(
        X, Y, batch_size=BATCH, verbose=0, callbacks=[HookToCallback(hook)], **arguments
    )
    return hook


def squared_error(model: Any, batch: int, rows: int = BATCH) -> Any:
    """The loss of the first rows of a batch, from weights that do not move."""
    x = X[batch * BATCH :][:rows]
    kernel, bias, out, out_bias = model.get_weights()
    predicted = np.maximum(x @ kernel + bias, 0) @ out + out_bias
    return float(np.mean((predicted - Y[batch * BATCH :][:rows]) ** 2))


@pytest.mark.parametrize("mode", ["fit", "evaluate"])
def test_the_loss_is_that_of_the_whole_batch(keras: Any, mode: str) -> None:
    model = model_of(keras, run_eagerly=mode == "evaluate")
    hook = run(model, "loss:0", mode=mode)
    expected = [squared_error(model, batch) for batch in range(4)]
    np.testing.assert_allclose([seen[0] for seen in hook.seen], expected, rtol=1e-5)


@pytest.mark.slow
def test_the_loss_of_the_last_of_several_steps(keras2: Any) -> None:
    # Keras 3 itself fails with several steps per execution under this strategy.
    model = model_of(keras2, steps_per_execution=2)
    hook = run(model, "loss:0")
    expected = [squared_error(model, batch) for batch in (1, 3)]
    np.testing.assert_allclose([seen[0] for seen in hook.seen], expected, rtol=1e-5)


def test_layers_and_gradients_are_those_of_the_first_replica(keras: Any) -> None:
    model = model_of(keras)
    names = ("hidden/Relu:0", "gradients/out/bias:0", "gradients/out/kernel:0")
    hook = run(model, *names, "out/kernel:0")
    kernel, bias, out, out_bias = model.get_weights()
    hidden = np.maximum(X[:HALF] @ kernel + bias, 0)
    # Each replica divides by the size of the whole batch, since gradients are summed.
    error = 2 * (hidden @ out + out_bias - Y[:HALF]) / BATCH
    expected = [hidden, error.sum(0), hidden.T @ error, out]
    for found, value in zip(hook.seen[0], expected, strict=True):
        assert found.shape == value.shape
        np.testing.assert_allclose(found, value, rtol=1e-4, atol=1e-6)


def test_outputs_of_an_own_step_are_those_of_the_first_replica(keras: Any) -> None:
    class Own(keras.Sequential):  # type: ignore[misc, name-defined]
        def train_step(self, data: Any) -> dict[str, Any]:
            x, y = data
            return {
                "rows": tf.cast(tf.shape(x)[0], tf.float32),
                "error": tf.reduce_mean((self(x, training=True) - y) ** 2),
            }

    model = model_of(keras, Own)
    hook = run(model, "rows:0", "error:0")
    expected = [(HALF, squared_error(model, batch, HALF)) for batch in range(4)]
    np.testing.assert_allclose(hook.seen, expected, rtol=1e-5)


@pytest.mark.slow
def test_moving_averages_are_saved_and_assigned_as_keras_has_them(
    keras: Any, tmp_path: Path
) -> None:
    class Assign(v1.train.SessionRunHook):  # type: ignore[misc]
        def begin(self) -> None:
            (variance,) = [v for v in v1.global_variables() if "variance" in v.name]
            self.assign = v1.assign(variance, [2.0, 3.0, 4.0, 5.0])

        def end(self, session: Any) -> None:
            session.run(self.assign)

    with mirrored().scope():
        norm = keras.layers.BatchNormalization(name="norm", momentum=0.5)
        model = keras.Sequential([keras.Input((4,)), norm, keras.layers.Dense(1)])
        model.compile("sgd", "mse")
    saver = v1.train.CheckpointSaverHook(str(tmp_path), save_steps=100)
    callbacks = [HookToCallback(hook) for hook in (saver, Assign())]
    model.fit(X, Y, batch_size=BATCH, verbose=0, callbacks=callbacks)
    _, _, mean, variance = norm.get_weights()
    saved = tf.train.load_variable(str(tmp_path), "norm/moving_mean")
    np.testing.assert_allclose(saved, mean, rtol=1e-6)
    np.testing.assert_array_equal(variance, [2.0, 3.0, 4.0, 5.0])
