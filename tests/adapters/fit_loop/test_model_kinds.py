"""Hooks in `fit` of every kind of model and under every way to compile it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hook_fetching import RANDOM, Fetch, X, Y, fit_both, sequential

from hookbridge.adapters.hook_to_callback import HookToCallback

v1: Any = tf.compat.v1

train: Any = v1.train


def test_an_unbuilt_sequential(keras: Any) -> None:
    hook = Fetch("loss:0", "hidden/Relu:0")
    model = keras.Sequential(
        [keras.layers.Dense(5, activation="relu", name="hidden"), keras.layers.Dense(1)]
    )
    model.compile("adam", "mse")
    model.fit(X, Y, batch_size=8, verbose=0, callbacks=[HookToCallback(hook)])
    assert hook.steps == [0, 1, 2, 3]
    assert hook.seen[0][1].shape == (8, 5)


@pytest.mark.slow
def test_a_functional_model_with_several_inputs_and_outputs(keras: Any) -> None:
    def make() -> Any:
        a, b = keras.Input((4,), name="a"), keras.Input((4,), name="b")
        joined = keras.layers.Concatenate(name="joined")([a, b])
        hidden = keras.layers.Dense(5, activation="tanh", name="hidden")(joined)
        outputs = [keras.layers.Dense(1, name=name)(hidden) for name in ("p", "q")]
        model = keras.Model([a, b], outputs)
        model.compile(
            keras.optimizers.SGD(0.05), ["mse", "mae"], loss_weights=[1.0, 0.5]
        )
        return model

    hook, _, _ = fit_both(make, [X, X], [Y, -Y], "loss:0", "hidden/Tanh:0")
    assert hook.seen[0][1].shape == (8, 5)


def test_a_subclassed_model_with_its_own_train_step(keras: Any) -> None:
    class Own(keras.Model):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.hidden = keras.layers.Dense(5, activation="relu", name="hidden")
            self.out = keras.layers.Dense(1, name="out")
            self.mean = keras.metrics.Mean(name="mean")

        def call(self, inputs: Any) -> Any:
            return self.out(self.hidden(inputs))

        @property
        def metrics(self) -> list[Any]:
            return [self.mean]

        def train_step(self, data: Any) -> dict[str, Any]:
            x, y = data
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((self(x) - y) ** 2, name="own_loss")
            variables = self.trainable_variables
            gradients = tape.gradient(loss, variables)
            self.optimizer.apply_gradients(zip(gradients, variables, strict=True))
            self.mean.update_state(loss)
            return {"loss": loss, "mean": self.mean.result()}

    def make() -> Any:
        model = Own()
        model.compile(keras.optimizers.SGD(0.05))
        model(X[:1])
        return model

    hook, _, _ = fit_both(make, X, Y, "loss:0", "mean:0", "own_loss:0")
    for loss, _, own in hook.seen:
        assert loss == pytest.approx(own)
    assert hook.seen[1][1] == pytest.approx(
        np.mean([s[0] for s in hook.seen[:2]]), rel=1e-5
    )


@pytest.mark.slow
def test_add_loss_masking_and_metrics_made_in_layers(keras: Any) -> None:
    class Penalty(keras.layers.Layer):  # type: ignore[misc, name-defined]
        def call(self, inputs: Any) -> Any:
            self.add_loss(0.1 * tf.reduce_mean(inputs**2))
            return inputs

    tokens = RANDOM.randint(0, 5, (32, 6))

    def make() -> Any:
        model = keras.Sequential(
            [
                keras.Input((6,), dtype="int32"),
                keras.layers.Embedding(5, 4, mask_zero=True, name="embedding"),
                keras.layers.LSTM(3, name="lstm"),
                Penalty(name="penalty"),
                keras.layers.Dense(1, name="out"),
            ]
        )
        model.compile(keras.optimizers.SGD(0.05), "mse")
        return model

    added = "BiasAdd" if keras.__version__.startswith("2") else "Add"
    hook, _, history = fit_both(make, tokens, Y, "loss:0", f"out/{added}:0")
    # The batch loss includes the penalty, as Keras's own mean does.
    first = [seen[0] for seen in hook.seen[:4]]
    assert np.mean(first) == pytest.approx(history["loss"][0], rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize(
    "how",
    [
        {"run_eagerly": True},
        {"jit_compile": True},
        {"jit_compile": False},
        {"steps_per_execution": 2},
        {"steps_per_execution": 3},
        {"steps_per_execution": 2, "run_eagerly": True},
    ],
    ids=str,
)
def test_ways_to_compile(keras: Any, how: dict[str, Any]) -> None:
    hook, _, _ = fit_both(
        lambda: sequential(keras, **how), X, Y, "loss:0", "hidden/Relu:0", "mae:0"
    )
    steps = how.get("steps_per_execution", 1)
    expected = {1: list(range(8)), 2: [0, 2, 4, 6], 3: [0, 3, 4, 7]}[steps]
    assert hook.steps == expected
    assert hook.last_step == 8
    assert all(values[1].shape == (8, 5) for values in hook.seen)


def test_an_inner_tensor_of_an_eager_step_is_refused_before_the_first(
    keras: Any,
) -> None:
    model = sequential(keras, run_eagerly=True)
    before = model.get_weights()
    with pytest.raises(KeyError, match="hidden/output:0"):
        model.fit(X, Y, verbose=0, callbacks=[HookToCallback(Fetch("hidden/MatMul:0"))])
    for one, other in zip(model.get_weights(), before, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.slow
def test_mixed_precision(keras: Any) -> None:
    policy = keras.mixed_precision
    policy.set_global_policy("mixed_float16")
    try:
        hook, _, _ = fit_both(
            lambda: sequential(keras), X, Y, "loss:0", "hidden/Relu:0"
        )
    finally:
        policy.set_global_policy("float32")
    assert hook.seen[0][1].dtype == np.float16
