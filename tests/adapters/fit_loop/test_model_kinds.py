"""Hooks in `fit` of every kind of model, and values that Keras does not return."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hook_fetching import RANDOM, Fetch, X, Y, fit_both, sequential

from hookbridge import errors
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


ONE_KERAS = True


def run(model: Any, *names: str, x: Any = X, y: Any = Y, hook: Any = None) -> Fetch:
    hook = hook or Fetch(*names)
    callbacks = [HookToCallback(hook)]
    model.fit(x, y, batch_size=8, shuffle=False, verbose=0, callbacks=callbacks)
    return hook  # type: ignore[no-any-return]


def with_step(keras: Any, step: Any, *args: Any) -> Any:
    """A linear model with a `train_step` of its own."""

    class Own(keras.Model):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.out = keras.layers.Dense(1, name="out")

        def call(self, inputs: Any) -> Any:
            return self.out(inputs)

        def train_step(self, data: Any) -> Any:
            return step(self, *data)

    model = Own()
    model(X[:1])
    model.compile(*args)
    return model


def batch_losses(model: Any) -> Any:
    kernel, bias = model.get_weights()
    return ((X @ kernel + bias - Y) ** 2).reshape(-1, 8).mean(1)


def test_the_loss_of_a_step_that_calls_compiled_loss(keras2: Any) -> None:
    def step(model: Any, x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            predicted = model(x, training=True)
            loss = model.compiled_loss(y, predicted, regularization_losses=model.losses)
        model.optimizer.minimize(loss, model.trainable_variables, tape=tape)
        return {m.name: m.result() for m in model.metrics}

    model = with_step(keras2, step, keras2.optimizers.SGD(0.0), "mse")
    hook = run(model, "loss:0")
    losses = [seen[0] for seen in hook.seen]
    np.testing.assert_allclose(losses, batch_losses(model), rtol=1e-5)


@pytest.mark.parametrize("with_variables", [False, True], ids=["built", "given"])
def test_a_step_that_applies_gradients_without_pairs(
    keras: Any, with_variables: bool
) -> None:
    if keras.__version__.startswith("2"):
        pytest.skip("`optimizer.apply` is of Keras 3")
    rates = keras.optimizers.schedules.PiecewiseConstantDecay([1], [0.5, 0.25])

    def step(model: Any, x: Any, y: Any) -> Any:
        variables = model.trainable_variables
        with tf.GradientTape() as tape:
            loss = model.compute_loss(y=y, y_pred=model(x))
        gradients = tape.gradient(loss, variables)
        given = {"trainable_variables": variables} if with_variables else {}
        model.optimizer.apply(gradients, **given)
        return {"bias_gradient": gradients[1]}

    model = with_step(keras, step, keras.optimizers.SGD(rates), "mse")
    model.optimizer.build(model.trainable_variables)
    hook = run(model, "learning_rate:0", "gradients/out/bias:0", "bias_gradient:0")
    assert [seen[0] for seen in hook.seen] == [0.5, 0.5, 0.25, 0.25]
    for _, found, expected in hook.seen:
        np.testing.assert_array_equal(found, expected)


@pytest.mark.slow
def test_gradients_have_no_scale_of_mixed_precision(keras: Any) -> None:
    names = ("gradients/out/bias:0", "gradients/hidden/kernel:0", "hidden/Relu:0")
    y = 0.1 * Y  # scaled gradients of larger errors are infinite in float16
    plain_model = sequential(keras)
    weights = [0.3 * weight for weight in plain_model.get_weights()]
    plain_model.set_weights(weights)
    plain = run(plain_model, *names, y=y)
    policy = keras.mixed_precision
    policy.set_global_policy("mixed_float16")
    try:
        model = sequential(keras)
        model.set_weights(weights)
        mixed = run(model, *names, y=y)
    finally:
        policy.set_global_policy("float32")
    assert mixed.seen[0][2].dtype == np.float16
    for found, expected in zip(mixed.seen[0][:2], plain.seen[0], strict=False):
        np.testing.assert_allclose(found, expected, rtol=0.02, atol=0.01)


def embedded(keras: Any) -> Any:
    model = keras.Sequential(
        [
            keras.Input((3,), dtype="int32"),
            keras.layers.Embedding(5, 2, name="words"),
            keras.layers.Flatten(),
            keras.layers.Dense(1, name="out"),
        ]
    )
    model.compile(keras.optimizers.SGD(1.0), "mse")
    return model


WORDS = np.tile(np.array([[0, 1, 1]], "int32"), (8, 1))


def test_the_gradient_of_an_embedding_is_dense_and_not_fed(keras: Any) -> None:
    class Feed(Fetch):
        def before_run(self, run_context: Any) -> Any:
            return train.SessionRunArgs([], {self.tensors[0]: np.zeros((5, 2))})

    model = embedded(keras)
    before = model.get_weights()[0]
    hook = run(model, "gradients/words/embeddings:0", x=WORDS, y=np.ones((8, 1)))
    moved = before - model.get_weights()[0]
    np.testing.assert_allclose(hook.seen[0][0], moved, rtol=1e-4, atol=1e-6)
    assert np.any(moved[:2]) and not np.any(moved[2:])
    feed = Feed("gradients/words/embeddings:0")
    with pytest.raises(errors.LiveSessionError, match="some rows only"):
        run(model, x=WORDS, y=np.ones((8, 1)), hook=feed)


def test_metrics_of_an_eager_step_with_several_outputs(keras: Any) -> None:
    inputs = keras.Input((4,))
    outputs = [keras.layers.Dense(1, name=name)(inputs) for name in ("p", "q")]
    model = keras.Model(inputs, outputs)
    own = keras.metrics.MeanSquaredError(name="own")
    metrics = {"p": ["mae"], "q": [own]}
    model.compile("sgd", ["mse", "mse"], metrics=metrics, run_eagerly=True)
    hook = run(model, "p_mae:0", "q_own:0", "q_loss:0", y=[Y, Y])
    assert hook.seen[0][1] == pytest.approx(hook.seen[0][2], rel=1e-5)
    with pytest.raises(KeyError, match="p_own"):
        run(model, "p_own:0", y=[Y, Y])
