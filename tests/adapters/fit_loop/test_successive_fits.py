"""Hooks in one `fit` after the other, in `evaluate` and `predict`, and their feeds."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import hook_hosts as hosts
import numpy as np
import pytest
import tensorflow as tf
from hook_fetching import Fetch, X, Y, fit_both, sequential

from hookbridge import errors
from hookbridge.adapters.hook_to_callback import HookToCallback

v1: Any = tf.compat.v1

train: Any = v1.train


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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
    # Traces: to look for names (two if the optimizer makes its slots in it), for steps
    # with a fetch, for steps without.
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


def _checked(keras: Any) -> Any:
    """A model that fails on values of 2 and above."""

    class Checked(keras.layers.Layer):  # type: ignore[misc, name-defined]
        def call(self, inputs: Any) -> Any:
            check = tf.debugging.assert_less(tf.reduce_max(inputs), 2.0)
            with tf.control_dependencies([check]):
                return tf.identity(inputs)

    layers = [keras.Input((4,)), Checked(), keras.layers.Dense(1, name="out")]
    return keras.Sequential(layers)


@pytest.mark.parametrize(
    ("how", "end"),
    [({}, "data"), ({"run_eagerly": True}, "error"), ({"strategy": True}, "error")],
    ids=str,
)
def test_a_fed_rate_does_not_outlive_its_step(
    keras: Any, how: dict[str, Any], end: str
) -> None:
    """The last step of each fit, which has no data or fails, was fed too."""
    how = dict(how)
    scope = hosts.mirrored().scope() if how.pop("strategy", False) else nullcontext()
    with scope:
        model = _checked(keras)
        model.compile(keras.optimizers.SGD(0.125), "mse", jit_compile=False, **how)
    x = np.concatenate([X[:16], 9 * X[:16] + 9]) if end == "error" else X
    data = tf.data.Dataset.from_tensor_slices((x, Y)).batch(8)
    hook = Feeder("learning_rate:0", [0.5] * 5, "learning_rate:0")
    fails = pytest.raises(tf.errors.InvalidArgumentError)
    with fails if end == "error" else nullcontext():
        model.fit(
            data.filter(lambda *_: True), verbose=0, callbacks=[HookToCallback(hook)]
        )
    assert [rate for (rate,) in hook.seen] == [0.5] * (2 if end == "error" else 4)
    assert float(np.asarray(model.optimizer.learning_rate)) == 0.125


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


def test_feeding_a_tensor_of_a_step_that_has_no_graph_is_refused(keras: Any) -> None:
    model = sequential(keras, run_eagerly=True)
    before = model.get_weights()
    hook = Feeder("loss:0", [1.0])
    with pytest.raises(errors.LiveSessionError, match="cannot be fed here"):
        model.fit(X, Y, verbose=0, callbacks=[HookToCallback(hook)])
    np.testing.assert_array_equal(model.get_weights()[0], before[0])
