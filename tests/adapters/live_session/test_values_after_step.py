"""What hooks read in `fit`: values of the step, of all replicas."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hook_fetching import Fetch, X, Y, hook_of, sequential, with_step
from hook_loops import mirrored, tf_log

import hookbridge as hb
from hookbridge import errors
from hookbridge.adapters.hook_to_callback import HookToCallback

ONE_KERAS = True

v1: Any = tf.compat.v1
train: Any = v1.train


def fetching(make: Any) -> Any:
    """Fetches what `make` returns in `begin`; names stay names."""
    hook = hook_of(
        begin=lambda self: setattr(self, "fetches", make()),
        before_run=lambda self, context: train.SessionRunArgs(self.fetches),
        after_run=lambda self, context, values: self.seen.append(values.results),
    )
    hook.seen = []
    return hook


def fit(model: Any, *hooks: Any) -> Any:
    """One quiet epoch of four batches in their order."""
    callbacks = [HookToCallback(hook) for hook in hooks]
    arguments = {"batch_size": 8, "shuffle": False, "verbose": 0}
    return model.fit(X, Y, callbacks=callbacks, **arguments)


def test_a_variable_s_own_name_is_its_value(keras: Any) -> None:
    def resource() -> Any:
        pairs = tf.lookup.KeyValueTensorInitializer(tf.constant([1]), tf.constant([2]))
        return tf.lookup.StaticHashTable(pairs, 0).resource_handle

    model, names = sequential(keras), ["global_step:0", "hidden/kernel:0"]
    kernel = model.get_weights()[0]
    hook = fetching(lambda: names)
    with tf_log() as lines:
        fit(model, hook, train.LoggingTensorHook(["global_step:0"], every_n_iter=1))
    assert [int(seen[0]) for seen in hook.seen] == [0, 1, 2, 3]
    np.testing.assert_array_equal(hook.seen[0][1], kernel)
    assert not np.array_equal(hook.seen[1][1], kernel)
    assert [line for line in lines if "global_step" in line] == [
        f"global_step:0 = {step}" for step in range(4)
    ]
    # Beside a tensor of the step, and by its handle.
    hook, kernel = fetching(lambda: [*names, "loss:0"]), model.get_weights()[0]
    handle = fetching(lambda: v1.trainable_variables()[0].handle)
    fit(model, hook, handle)
    assert [int(seen[0]) for seen in hook.seen] == [4, 5, 6, 7]
    for found in (hook.seen[0][1], handle.seen[0]):
        np.testing.assert_array_equal(found, kernel)
    # A resource that is no variable is refused before the step.
    before = model.get_weights()
    with pytest.raises(errors.LiveSessionError, match="read from it"):
        fit(model, fetching(resource))
    for one, other in zip(model.get_weights(), before, strict=True):
        np.testing.assert_array_equal(one, other)


def four_batches() -> Any:
    return tf.data.Dataset.from_tensor_slices((X, Y)).batch(8)


def steps_of(model: Any, data: Any, epochs: int, *hooks: Any) -> list[int]:
    hook = Fetch()
    callbacks = [HookToCallback(h) for h in (hook, *hooks)]
    model.fit(data, epochs=epochs, verbose=0, callbacks=callbacks)
    return hook.steps


def test_steps_of_fits_of_data_of_unknown_size(
    subtests: pytest.Subtests, keras: Any, tmp_path: Path
) -> None:
    # Keras makes a call for a fifth batch, which the optimizer counts.
    data = four_batches().filter(lambda *_: True)
    model = sequential(keras)
    saver = train.CheckpointSaverHook(str(tmp_path), save_steps=4)
    assert steps_of(model, data, 2, saver) == list(range(8))
    assert steps_of(model, data, 1) == list(range(8, 12))
    # A restored model goes on at the checkpoint's step.
    for restored in (model, sequential(keras)):
        with subtests.test(str(restored)):
            hb.checkpoints.restore(restored, str(tmp_path / "model.ckpt-4"))
            assert steps_of(restored, data, 1) == list(range(4, 8))
    model.compile("sgd", "mse")
    assert steps_of(model, data, 1) == list(range(4))


@pytest.mark.parametrize("is_eager", [False, True], ids=["graph", "eager"])
def test_several_steps_a_call_are_counted(keras: Any, is_eager: bool) -> None:
    """By a model that does not use its optimizer, and in mixed precision."""
    own = keras.optimizers.SGD(0.05)

    def step(model: Any, x: Any, y: Any) -> dict[str, Any]:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x) - y) ** 2)
        variables = model.trainable_variables
        gradients = tape.gradient(loss, variables)
        own.apply_gradients(zip(gradients, variables, strict=True))
        return {"own_loss": loss}

    options = {"steps_per_execution": 2, "run_eagerly": is_eager}
    models = [with_step(keras, step, **options)]
    if not is_eager:
        keras.mixed_precision.set_global_policy("mixed_float16")
        try:
            models.append(sequential(keras, **options))
        finally:
            keras.mixed_precision.set_global_policy("float32")
    for model in models:
        stop = train.StopAtStepHook(num_steps=6)
        assert steps_of(model, four_batches(), 3, stop) == [0, 2, 4, 6]


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


def check_losses(model: Any, found: list[Any], *batches: int, rows: int = 8) -> None:
    """Compares with losses of the first rows of batches; weights must not move."""
    kernel, bias, out, out_bias = model.get_weights()
    error = (np.maximum(X @ kernel + bias, 0) @ out + out_bias - Y) ** 2
    expected = [error[BATCH * b :][:rows].mean() for b in batches]
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_a_metric_of_replicas_is_that_of_the_logs(keras: Any) -> None:
    seen_logs: list[float] = []
    model, hook = model_of(keras, metrics=["mae"]), Fetch("mae:0")

    class Logs(keras.callbacks.Callback):  # type: ignore[misc]
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            seen_logs.append(float(logs["mae"]))

    callbacks = hb.as_callbacks([hook, Logs()])
    model.fit(X, Y, batch_size=8, shuffle=False, verbose=0, callbacks=callbacks)
    assert len(seen_logs) == 4
    found = [float(seen[0]) for seen in hook.seen]
    np.testing.assert_allclose(found, seen_logs, rtol=1e-6)


def test_values_of_replicas(keras: Any, keras2: Any) -> None:
    """The loss is that of the whole batch, all others are the first replica's."""
    model, hook = model_of(keras), Fetch("hidden/Relu:0", "out/kernel:0", "loss:0")
    hook.names += ("gradients/out/bias:0", "gradients/out/kernel:0")
    fit(model, hook)
    check_losses(model, [seen[2] for seen in hook.seen], 0, 1, 2, 3)
    kernel, bias, out, out_bias = model.get_weights()
    hidden = np.maximum(X[:HALF] @ kernel + bias, 0)
    # Each replica divides by the size of the whole batch, since gradients are summed.
    error = 2 * (hidden @ out + out_bias - Y[:HALF]) / BATCH
    del hook.seen[0][2]
    expected = [hidden, out, error.sum(0), hidden.T @ error]
    for found, value in zip(hook.seen[0], expected, strict=True):
        assert found.shape == value.shape
        np.testing.assert_allclose(found, value, rtol=1e-4, atol=1e-6)
    if keras is keras2:  # Keras 3 itself fails with several steps per execution
        model, hook = model_of(keras, steps_per_execution=2), Fetch("loss:0")
        fit(model, hook)
        check_losses(model, [loss for (loss,) in hook.seen], 1, 3)
    # In `evaluate` of a model that runs eagerly.
    model, hook = model_of(keras, run_eagerly=True), Fetch("loss:0")
    callbacks = [HookToCallback(hook)]
    model.evaluate(X, Y, batch_size=BATCH, verbose=0, callbacks=callbacks)
    check_losses(model, [loss for (loss,) in hook.seen], 0, 1, 2, 3)

    class Own(keras.Sequential):  # type: ignore[misc, name-defined]
        def train_step(self, data: Any) -> dict[str, Any]:
            x, y = data
            return {
                "rows": tf.cast(tf.shape(x)[0], tf.float32),
                "error": tf.reduce_mean((self(x, training=True) - y) ** 2),
            }

    model, hook = model_of(keras, Own), Fetch("rows:0", "error:0")
    fit(model, hook)
    assert {rows for rows, _ in hook.seen} == {HALF}
    check_losses(model, [error for _, error in hook.seen], 0, 1, 2, 3, rows=HALF)


@pytest.mark.slow
def test_moving_averages_are_saved_and_assigned_as_keras_has_them(
    keras: Any, tmp_path: Path
) -> None:
    def begin(self: Any) -> None:
        (variance,) = [v for v in v1.global_variables() if "variance" in v.name]
        self.assign = v1.assign(variance, [2.0, 3.0, 4.0, 5.0])

    assign = hook_of(begin=begin, end=lambda self, session: session.run(self.assign))
    with mirrored().scope():
        norm = keras.layers.BatchNormalization(name="norm", momentum=0.5)
        model = keras.Sequential([keras.Input((4,)), norm, keras.layers.Dense(1)])
        model.compile("sgd", "mse")
    fit(model, train.CheckpointSaverHook(str(tmp_path), save_steps=100), assign)
    _, _, mean, variance = norm.get_weights()
    saved = tf.train.load_variable(str(tmp_path), "norm/moving_mean")
    np.testing.assert_allclose(saved, mean, rtol=1e-6)
    np.testing.assert_array_equal(variance, [2.0, 3.0, 4.0, 5.0])
