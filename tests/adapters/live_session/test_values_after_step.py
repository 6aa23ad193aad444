"""What hooks read in `fit`: values of the step, of all replicas."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hook_fetching import Fetch, X, Y, sequential
from hook_hosts import mirrored, tf_log

import hookbridge as hb
from hookbridge import errors
from hookbridge.adapters.hook_to_callback import HookToCallback

v1: Any = tf.compat.v1
train: Any = v1.train


def fit(model: Any, *hooks: Any, **kwargs: Any) -> Any:
    """One quiet epoch of four batches in their order."""
    arguments = {"batch_size": 8, "shuffle": False, "verbose": 0, **kwargs}
    return model.fit(X, Y, callbacks=[HookToCallback(h) for h in hooks], **arguments)


class Named(train.SessionRunHook):  # type: ignore[misc]
    """Fetches by names and nothing else."""

    def __init__(self, fetches: Any) -> None:
        self.fetches = fetches
        self.seen: list[Any] = []

    def before_run(self, run_context: Any) -> Any:
        return train.SessionRunArgs(self.fetches)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self.seen.append(run_values.results)


@pytest.mark.parametrize("beside", [[], ["loss:0"]], ids=["alone", "beside the loss"])
def test_a_variable_s_own_name_is_its_value(keras: Any, beside: list[str]) -> None:
    model = sequential(keras)
    kernel = model.get_weights()[0]
    hook = Named(["global_step:0", "hidden/kernel:0", *beside])
    with tf_log() as lines:
        fit(model, hook, train.LoggingTensorHook(["global_step:0"], every_n_iter=1))
    assert [int(seen[0]) for seen in hook.seen] == [0, 1, 2, 3]
    np.testing.assert_array_equal(hook.seen[0][1], kernel)
    assert not np.array_equal(hook.seen[1][1], kernel)
    assert [line for line in lines if "global_step" in line] == [
        f"global_step:0 = {step}" for step in range(4)
    ]


def test_ops_on_what_a_variable_s_name_gives(keras: Any) -> None:
    class Twice(Named):
        def begin(self) -> None:
            step = v1.get_default_graph().get_tensor_by_name("global_step:0")
            self.fetches = 2 * step

    hook = Twice(None)
    fit(sequential(keras), hook)
    assert hook.seen == [0, 2, 4, 6]


def test_a_resource_is_refused_before_the_step(keras: Any) -> None:
    class Table(Named):
        def begin(self) -> None:
            keys, values = tf.constant([1]), tf.constant([2])
            pairs = tf.lookup.KeyValueTensorInitializer(keys, values)
            self.fetches = tf.lookup.StaticHashTable(pairs, 0).resource_handle

    model = sequential(keras)
    before = model.get_weights()
    with pytest.raises(errors.LiveSessionError, match="read from it"):
        fit(model, Table(None))
    for one, other in zip(model.get_weights(), before, strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_handle_of_a_variable_gives_its_value_too(keras: Any) -> None:
    class Handle(Fetch):
        def begin(self) -> None:
            super().begin()
            self.tensors = [v1.trainable_variables()[0].handle]

    model, hook = sequential(keras), Handle()
    kernel = model.get_weights()[0]
    fit(model, hook)
    np.testing.assert_array_equal(hook.seen[0][0], kernel)


def unknown_size() -> Any:
    """Four batches: Keras makes a call for a fifth, which the optimizer counts."""
    data = tf.data.Dataset.from_tensor_slices((X, Y)).batch(8)
    return data.filter(lambda *_: True)


def steps_of(model: Any, data: Any, epochs: int, *hooks: Any) -> list[int]:
    hook = Fetch()
    callbacks = [HookToCallback(h) for h in (hook, *hooks)]
    model.fit(data, epochs=epochs, verbose=0, callbacks=callbacks)
    return hook.steps


def test_a_new_optimizer_after_data_of_unknown_size_counts_from_zero(
    keras: Any,
) -> None:
    model = sequential(keras)
    assert steps_of(model, unknown_size(), 2) == list(range(8))
    assert steps_of(model, unknown_size(), 1) == list(range(8, 12))
    model.compile("sgd", "mse")
    assert steps_of(model, unknown_size(), 1) == list(range(4))


@pytest.mark.parametrize("is_new", [False, True], ids=["same model", "new model"])
def test_a_restored_model_goes_on_at_the_checkpoint_s_step(
    keras: Any, tmp_path: Path, is_new: bool
) -> None:
    model = sequential(keras)
    saver = train.CheckpointSaverHook(str(tmp_path), save_steps=4)
    steps_of(model, unknown_size(), 2, saver)
    first = str(tmp_path / "model.ckpt-4")
    later = sequential(keras) if is_new else model
    hb.checkpoints.restore(later, first)
    assert steps_of(later, unknown_size(), 1) == list(range(4, 8))


def with_an_optimizer_of_its_own(keras: Any) -> Any:
    class Own(keras.Model):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.out = keras.layers.Dense(1, name="out")
            self.own = keras.optimizers.SGD(0.05)

        def call(self, inputs: Any) -> Any:
            return self.out(inputs)

        def train_step(self, data: Any) -> dict[str, Any]:
            x, y = data
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((self(x) - y) ** 2)
            variables = self.trainable_variables
            gradients = tape.gradient(loss, variables)
            self.own.apply_gradients(zip(gradients, variables, strict=True))
            return {"own_loss": loss}

    return Own()


@pytest.mark.parametrize("is_eager", [False, True], ids=["graph", "eager"])
def test_several_steps_of_a_model_whose_optimizer_is_not_used(
    keras: Any, is_eager: bool
) -> None:
    model = with_an_optimizer_of_its_own(keras)
    model(X[:1])
    model.compile(steps_per_execution=2, run_eagerly=is_eager)
    data = tf.data.Dataset.from_tensor_slices((X, Y)).batch(8)
    stop = train.StopAtStepHook(num_steps=6)
    assert steps_of(model, data, 3, stop) == [0, 2, 4, 6]


def test_several_steps_in_mixed_precision(keras: Any) -> None:
    policy = keras.mixed_precision
    policy.set_global_policy("mixed_float16")
    try:
        model = sequential(keras, steps_per_execution=2)
        data = tf.data.Dataset.from_tensor_slices((X, Y)).batch(8)
        stop = train.StopAtStepHook(num_steps=6)
        assert steps_of(model, data, 3, stop) == [0, 2, 4, 6]
    finally:
        policy.set_global_policy("float32")


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
