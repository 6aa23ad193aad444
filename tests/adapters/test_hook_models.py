"""Hooks in `fit` of every kind of model and under every way to compile it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from hookbridge import errors
from hookbridge.adapters.hook_to_callback import HookToCallback

v1: Any = tf.compat.v1
train: Any = v1.train


class Fetch(train.SessionRunHook):  # type: ignore[misc]
    """Fetches tensors by name and the global step with each step."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def begin(self) -> None:
        graph = v1.get_default_graph()
        self.tensors = [graph.get_tensor_by_name(name) for name in self.names]
        self.step = train.get_global_step()
        self.seen: list[list[Any]] = []
        self.steps: list[int] = []
        self.ended = False

    def before_run(self, run_context: Any) -> Any:
        return train.SessionRunArgs([self.step, self.tensors])

    def after_run(self, run_context: Any, run_values: Any) -> None:
        step, values = run_values.results
        self.steps.append(int(step))
        self.seen.append(values)

    def end(self, session: Any) -> None:
        self.ended = True
        self.last_step = int(session.run(self.step))


def fit_both(
    make: Any, x: Any, y: Any, *names: str, **kwargs: Any
) -> tuple[Fetch, Any, Any]:
    """Fits a model with a fetching hook and its twin without any."""
    hook = Fetch(*names)
    arguments = {"epochs": 2, "batch_size": 8, "shuffle": False, "verbose": 0, **kwargs}
    bare, hooked = make(), make()
    hooked.set_weights(bare.get_weights())
    expected = bare.fit(x, y, **arguments).history
    found = hooked.fit(x, y, callbacks=[HookToCallback(hook)], **arguments).history
    assert found.keys() == expected.keys()
    for key, values in expected.items():
        np.testing.assert_allclose(found[key], values, rtol=1e-3, atol=1e-5)
    for one, other in zip(hooked.get_weights(), bare.get_weights(), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-5)
    assert hook.ended
    return hook, hooked, found


RANDOM = np.random.RandomState(3)
X = RANDOM.rand(32, 4).astype("float32")
Y = X.sum(1, keepdims=True)


def sequential(keras: Any, **compile_args: Any) -> Any:
    model = keras.Sequential(
        [
            keras.Input((4,)),
            keras.layers.Dense(5, activation="relu", name="hidden"),
            keras.layers.Dense(1, name="out"),
        ]
    )
    model.compile(keras.optimizers.SGD(0.05), "mse", metrics=["mae"], **compile_args)
    return model


def test_an_unbuilt_sequential(keras: Any) -> None:
    hook = Fetch("loss:0", "hidden/Relu:0")
    model = keras.Sequential(
        [keras.layers.Dense(5, activation="relu", name="hidden"), keras.layers.Dense(1)]
    )
    model.compile("adam", "mse")
    model.fit(X, Y, batch_size=8, verbose=0, callbacks=[HookToCallback(hook)])
    assert hook.steps == [0, 1, 2, 3]
    assert hook.seen[0][1].shape == (8, 5)


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
    # The batch loss has the penalty in it, as Keras's own mean has.
    first = [seen[0] for seen in hook.seen[:4]]
    assert np.mean(first) == pytest.approx(history["loss"][0], rel=1e-3)


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


def test_compiled_and_fitted_several_times_with_and_without_hooks(keras: Any) -> None:
    model = sequential(keras)
    hook = Fetch("loss:0")
    arguments: dict[str, Any] = {"batch_size": 8, "verbose": 0}
    model.fit(X, Y, **arguments)
    model.fit(X, Y, callbacks=[HookToCallback(hook)], **arguments)
    assert hook.steps == [4, 5, 6, 7]
    model.fit(X, Y, **arguments)
    assert len(hook.seen) == 4  # a fit without hooks calls none
    model.compile("adam", "mse")
    model.fit(X, Y, callbacks=[HookToCallback(hook)], **arguments)
    assert hook.steps == [0, 1, 2, 3]  # a new optimizer counts from zero
    model.evaluate(X, Y, verbose=0)
    model.fit(X, Y, **arguments)
    assert len(hook.seen) == 4


@pytest.mark.parametrize("mode", ["evaluate", "predict"])
def test_evaluate_and_predict(keras: Any, mode: str) -> None:
    model = sequential(keras)
    hook = Fetch("hidden/Relu:0", *(["loss:0"] if mode == "evaluate" else []))
    arguments: dict[str, Any] = {"batch_size": 8, "verbose": 0}
    data = (X, Y) if mode == "evaluate" else (X,)
    expected = getattr(model, mode)(*data, **arguments)
    found = getattr(model, mode)(*data, callbacks=[HookToCallback(hook)], **arguments)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert len(hook.seen) == 4 and hook.ended
    assert hook.seen[0][0].shape == (8, 5)
    np.testing.assert_allclose(getattr(model, mode)(*data, **arguments), expected)


def test_validation_inside_fit_calls_no_hook(keras: Any) -> None:
    hook, _, history = fit_both(
        lambda: sequential(keras), X, Y, "loss:0", validation_data=(X, Y)
    )
    assert len(hook.seen) == 8
    assert "val_mae" in history


def test_gradients_and_a_schedule(keras: Any) -> None:
    model = sequential(keras)
    schedule = keras.optimizers.schedules.ExponentialDecay(0.1, 1, 0.5)
    model.compile(keras.optimizers.SGD(schedule), "mse")
    hook = Fetch("gradients/hidden/kernel:0", "learning_rate:0")
    before = model.get_weights()[0]
    model.fit(X, Y, batch_size=16, verbose=0, callbacks=[HookToCallback(hook)])
    (g0, r0), (g1, r1) = hook.seen
    assert (r0, r1) == pytest.approx((0.1, 0.05))
    np.testing.assert_allclose(
        model.get_weights()[0], before - r0 * g0 - r1 * g1, rtol=1e-4, atol=1e-6
    )


def test_steady_state_traces_nothing(keras: Any) -> None:
    model = sequential(keras)
    calls = []
    step = model.train_step

    def counting(data: Any) -> Any:
        calls.append(1)  # runs when Keras traces
        return step(data)

    model.train_step = counting
    hook = train.LoggingTensorHook(["loss:0", "hidden/Relu:0"], every_n_iter=3)
    model.fit(X, Y, batch_size=2, epochs=3, verbose=0, callbacks=[HookToCallback(hook)])
    # Looking for names (twice where the optimizer makes its slots in it), steps
    # with a fetch, steps without.
    assert len(calls) <= 4
    before = len(calls)
    model.fit(X, Y, batch_size=2, epochs=9, verbose=0, callbacks=[HookToCallback(hook)])
    assert len(calls) - before <= 3  # as many in nine epochs as in three


def test_end_of_unknown_data_is_a_before_run_without_after_run(keras: Any) -> None:
    class Events(train.SessionRunHook):  # type: ignore[misc]
        def begin(self) -> None:
            self.events: list[str] = []

        def before_run(self, run_context: Any) -> None:
            self.events.append("before_run")

        def after_run(self, run_context: Any, run_values: Any) -> None:
            self.events.append("after_run")

        def end(self, session: Any) -> None:
            self.step = int(session.run(train.get_global_step()))

    data = tf.data.Dataset.from_tensor_slices((X, Y)).filter(lambda *_: True).batch(16)
    model, hook = sequential(keras), Events()
    model.fit(data, epochs=1, verbose=0, callbacks=[HookToCallback(hook)])
    assert hook.events == ["before_run", "after_run"] * 2 + ["before_run"]
    assert hook.step == 2  # `iterations` may say 3


def test_an_uncompiled_model_raises_what_keras_raises(keras: Any) -> None:
    model = keras.Sequential([keras.layers.Dense(1)])
    with pytest.raises((RuntimeError, ValueError), match="compile"):
        model.fit(X, Y, callbacks=[HookToCallback(Fetch("loss:0"))], verbose=0)


class Feeder(train.SessionRunHook):  # type: ignore[misc]
    """Feeds one tensor a value per step."""

    def __init__(self, name: str, values: list[float], *names: str) -> None:
        self.name, self.values, self.names = name, values, names

    def begin(self) -> None:
        graph = v1.get_default_graph()
        self.tensor = graph.get_tensor_by_name(self.name)
        self.fetches = [graph.get_tensor_by_name(name) for name in self.names]
        self.seen: list[Any] = []

    def before_run(self, run_context: Any) -> Any:
        value = self.values[len(self.seen)]
        return train.SessionRunArgs(self.fetches, feed_dict={self.tensor: value})

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self.seen.append(run_values.results)


def test_a_fed_rate_takes_the_place_of_a_schedules(keras: Any) -> None:
    model = sequential(keras)
    schedule = keras.optimizers.schedules.ExponentialDecay(0.1, 1, 0.5)
    model.compile(keras.optimizers.SGD(schedule), "mse")
    hook = Feeder("learning_rate:0", [0.3, 0.0], "gradients/hidden/kernel:0")
    before = model.get_weights()[0]
    arguments: dict[str, Any] = {"batch_size": 16, "verbose": 0}
    model.fit(X, Y, callbacks=[HookToCallback(hook)], **arguments)
    np.testing.assert_allclose(
        model.get_weights()[0], before - 0.3 * hook.seen[0][0], rtol=1e-4, atol=1e-6
    )
    fetch = Fetch("learning_rate:0")  # the schedule itself goes on
    model.fit(X, Y, callbacks=[HookToCallback(fetch)], **arguments)
    assert fetch.seen[0][0] == pytest.approx(0.025)


def test_a_placeholder_with_default_of_the_step_is_fed(keras: Any) -> None:
    class Scaled(keras.layers.Layer):  # type: ignore[misc, name-defined]
        def call(self, inputs: Any) -> Any:
            return inputs * v1.placeholder_with_default(1.0, [], name="scale")

    def make() -> Any:
        model = keras.Sequential(
            [keras.Input((4,)), Scaled(name="scaled"), keras.layers.Dense(1)]
        )
        model.compile(keras.optimizers.SGD(0.0), "mse", jit_compile=False)
        return model

    model = make()
    hook = Feeder("scaled/scale:0", [1.0, 0.0], "loss:0")
    model.fit(
        X[:16], Y[:16], batch_size=8, verbose=0, shuffle=False,
        callbacks=[HookToCallback(hook)],
    )  # fmt: skip
    untouched = model.evaluate(X[:8], Y[:8], verbose=0)
    zeroed = model.evaluate(0 * X[8:16], Y[8:16], verbose=0)
    assert [s[0] for s in hook.seen] == pytest.approx([untouched, zeroed], rel=1e-4)


@pytest.mark.parametrize("how", [{"run_eagerly": True}])
def test_feeding_a_tensor_of_a_step_that_has_no_graph_is_refused(
    keras: Any, how: dict[str, Any]
) -> None:
    model = sequential(keras, **how)
    before = model.get_weights()
    hook = Feeder("loss:0", [1.0])
    with pytest.raises(errors.LiveSessionError, match="cannot be fed here"):
        model.fit(X, Y, verbose=0, callbacks=[HookToCallback(hook)])
    np.testing.assert_array_equal(model.get_weights()[0], before[0])
