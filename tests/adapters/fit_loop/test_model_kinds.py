"""Hooks in `fit` of every kind of model, and values that Keras does not return."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hook_fetching import RANDOM, Fetch, X, Y, fit_both, run_loop, sequential, with_step

from hookbridge import errors
from hookbridge.ground import compat

ONE_KERAS = True

train: Any = tf.compat.v1.train


def run(model: Any, *names: str, data: Any = None, hook: Any = None) -> Fetch:
    hook = hook or Fetch(*names)
    run_loop(model, hook, data=data)
    return hook  # type: ignore[no-any-return]


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
    def step(model: Any, x: Any, y: Any) -> dict[str, Any]:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x) - y) ** 2, name="own_loss")
        variables = model.trainable_variables
        gradients = tape.gradient(loss, variables)
        model.optimizer.apply_gradients(zip(gradients, variables, strict=True))
        model.mean.update_state(loss)
        return {"loss": loss, "mean": model.mean.result()}

    def make() -> Any:
        return with_step(keras, step, keras.optimizers.SGD(0.05))

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
                keras.layers.SimpleRNN(3, name="memory"),
                Penalty(name="penalty"),
                keras.layers.Dense(1, name="out"),
            ]
        )
        model.compile(keras.optimizers.SGD(0.05), "mse")
        return model

    # Keras 3 adds the bias by another operation up to 3.15.
    is_plain = (3, 0) <= compat.keras3_version() < (3, 16) and hasattr(keras, "ops")
    added = "Add" if is_plain else "BiasAdd"
    hook, _, history = fit_both(make, tokens, Y, "loss:0", f"out/{added}:0")
    # The batch loss includes the penalty, as Keras's own mean does.
    first = [seen[0] for seen in hook.seen[:4]]
    assert np.mean(first) == pytest.approx(history["loss"][0], rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "steps"),
    [
        ({"run_eagerly": True}, range(8)),
        pytest.param({"jit_compile": True}, range(8), marks=pytest.mark.one_tensorflow),
        ({"steps_per_execution": 3}, [0, 3, 4, 7]),
        ({"steps_per_execution": 2, "run_eagerly": True}, [0, 2, 4, 6]),
    ],
    ids=str,
)
def test_ways_to_compile(keras: Any, how: dict[str, Any], steps: Any) -> None:
    hook, _, _ = fit_both(
        lambda: sequential(keras, **how), X, Y, "loss:0", "hidden/Relu:0", "mae:0"
    )
    assert hook.steps == list(steps) and hook.last_step == 8
    assert all(values[1].shape == (8, 5) for values in hook.seen)


def test_the_loss_of_a_step_that_calls_compiled_loss(keras2: Any) -> None:
    def step(model: Any, x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            predicted = model(x, training=True)
            loss = model.compiled_loss(y, predicted, regularization_losses=model.losses)
        model.optimizer.minimize(loss, model.trainable_variables, tape=tape)
        return {m.name: m.result() for m in model.metrics}

    model = with_step(keras2, step, keras2.optimizers.SGD(0.0), "mse")
    losses = [seen[0] for seen in run(model, "loss:0").seen]
    kernel, bias = model.out.get_weights()
    expected = ((X @ kernel + bias - Y) ** 2).reshape(-1, 8).mean(1)
    np.testing.assert_allclose(losses, expected, rtol=1e-5)


@pytest.mark.parametrize("with_variables", [False, True], ids=["built", "given"])
def test_a_step_that_applies_gradients_without_pairs(
    keras3: Any, with_variables: bool
) -> None:
    """It calls `optimizer.apply` of Keras 3."""
    rates = keras3.optimizers.schedules.PiecewiseConstantDecay([1], [0.5, 0.25])

    def step(model: Any, x: Any, y: Any) -> Any:
        variables = model.trainable_variables
        with tf.GradientTape() as tape:
            loss = model.compute_loss(y=y, y_pred=model(x))
        gradients = tape.gradient(loss, variables)
        given = {"trainable_variables": variables} if with_variables else {}
        model.optimizer.apply(gradients, **given)
        return {"bias_gradient": gradients[1]}

    model = with_step(keras3, step, keras3.optimizers.SGD(rates), "mse")
    model.optimizer.build(model.trainable_variables)
    hook = run(model, "learning_rate:0", "gradients/out/bias:0", "bias_gradient:0")
    assert [seen[0] for seen in hook.seen] == [0.5, 0.5, 0.25, 0.25]
    for _, found, expected in hook.seen:
        np.testing.assert_array_equal(found, expected)


@pytest.mark.slow
def test_gradients_have_no_scale_of_mixed_precision(keras: Any) -> None:
    names = ("gradients/out/bias:0", "gradients/hidden/kernel:0", "hidden/Relu:0")
    y = 0.1 * Y  # scaled gradients of larger errors are infinite in float16
    weights = [0.3 * weight for weight in sequential(keras).get_weights()]

    def seen(policy: str) -> list[Any]:
        keras.mixed_precision.set_global_policy(policy)
        model = sequential(keras)
        model.set_weights(weights)
        return run(model, *names, data=(X, y)).seen[0]

    plain = seen("float32")
    try:
        mixed = seen("mixed_float16")
    finally:
        keras.mixed_precision.set_global_policy("float32")
    assert mixed[2].dtype == np.float16
    for found, expected in zip(mixed[:2], plain, strict=False):
        np.testing.assert_allclose(found, expected, rtol=0.02, atol=0.01)


def test_the_gradient_of_an_embedding_is_dense_and_not_fed(keras: Any) -> None:
    class Feed(Fetch):
        def before_run(self, run_context: Any) -> Any:
            return train.SessionRunArgs([], {self.tensors[0]: np.zeros((5, 2))})

    # The model has no weights before its first step.
    layers = [keras.layers.Embedding(5, 2, name="words")]
    layers.append(keras.layers.GlobalAveragePooling1D())
    model = keras.Sequential([*layers, keras.layers.Dense(1, name="out")])
    model.compile(keras.optimizers.SGD(1.0), "mse")
    name, moved = "gradients/words/embeddings:0", []
    data = np.tile(np.array([[0, 1, 1]], "int32"), (8, 1)), np.ones((8, 1))
    for _ in range(2):
        before = model.get_weights()
        hook = run(model, name, data=data)
        assert [values[0].shape for values in hook.seen] == [(5, 2)]
        moved = [a - b for a, b in zip(before, model.get_weights(), strict=False)]
    np.testing.assert_allclose(hook.seen[0][0], moved[0], rtol=1e-4, atol=1e-6)
    assert np.any(moved[0][:2]) and not np.any(moved[0][2:])
    with pytest.raises(errors.LiveSessionError, match="some rows only"):
        run(model, data=data, hook=Feed(name))


def test_names_of_an_eager_step_with_several_outputs(
    subtests: pytest.Subtests, keras: Any
) -> None:
    inputs = keras.Input((4,))
    outputs = [keras.layers.Dense(1, name=name)(inputs) for name in ("p", "q")]
    model = keras.Model(inputs, outputs)
    own = keras.metrics.MeanSquaredError(name="own")
    metrics = {"p": ["mae"], "q": [own]}
    model.compile("sgd", ["mse", "mse"], metrics=metrics, run_eagerly=True)
    hook = run(model, "p_mae:0", "q_own:0", "q_loss:0", data=(X, [Y, Y]))
    assert hook.seen[0][1] == pytest.approx(hook.seen[0][2], rel=1e-5)
    # An inner tensor is refused before the first step.
    before = model.get_weights()
    for name, nearest in (("p_own:0", "p_own"), ("p/MatMul:0", "p/output:0")):
        with subtests.test(str(name)), pytest.raises(KeyError, match=nearest):
            run(model, name, data=(X, [Y, Y]))
    np.testing.assert_equal(model.get_weights(), before)
