"""Hooks in one `fit` after the other, their feeds, and their stops in other loops."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import hook_hosts as hosts
import numpy as np
import pytest
import tensorflow as tf
from hook_fetching import Fetch, X, Y, sequential

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
    validated = model.fit(
        X, Y, callbacks=[HookToCallback(hook)], validation_data=(X, Y), **arguments
    )
    assert hook.steps == [4, 5, 6, 7]  # validation calls no hook
    assert "val_mae" in validated.history
    model.fit(X, Y, **arguments)
    assert len(hook.seen) == 4  # a fit without hooks calls none
    model.compile("adam", "mse")
    model.fit(X, Y, callbacks=[HookToCallback(hook)], **arguments)
    assert hook.steps == [0, 1, 2, 3]  # a new optimizer counts from zero
    model.evaluate(X, Y, verbose=0)
    model.fit(X, Y, **arguments)
    assert len(hook.seen) == 4


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


ONE_KERAS = True

LOOPS = pytest.mark.parametrize("loop", ["evaluate", "predict"])
ROWS = 8  # per batch


class Stop(train.SessionRunHook):  # type: ignore[misc]
    """Asks for a stop in its second run."""

    def __init__(self, event: str, error: type[Exception] | None = None) -> None:
        self.event, self.error, self.runs = event, error, 0

    def _stop(self, run_context: Any, event: str) -> None:
        if self.runs == 2 and event == self.event:
            if self.error is not None:
                raise self.error("a hook")
            run_context.request_stop()

    def before_run(self, run_context: Any) -> None:
        self.runs += 1
        self._stop(run_context, "before_run")

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self._stop(run_context, "after_run")


def run(model: Any, loop: str, hooks: list[Any], *, known: bool = True) -> Any:
    data = tf.data.Dataset.from_tensor_slices((X, Y)).batch(ROWS)
    if not known:
        data = data.filter(lambda *_: True)
    callbacks = [HookToCallback(hook) for hook in hooks]
    return getattr(model, loop)(data, verbose=0, callbacks=callbacks)


def check_rows(model: Any, loop: str, found: Any, rows: int) -> None:
    data = (X[:rows], Y[:rows]) if loop == "evaluate" else (X[:rows],)
    expected = getattr(model, loop)(*data, batch_size=ROWS, verbose=0)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@LOOPS
@pytest.mark.parametrize(
    ("event", "error", "known", "steps"),
    [
        ("before_run", None, True, 2),
        ("after_run", None, True, 2),
        ("after_run", None, False, 2),
        ("after_run", StopIteration, True, 2),
        ("before_run", StopIteration, True, 1),
    ],
)
def test_a_stop_ends_the_loop(
    keras: Any,
    loop: str,
    event: str,
    error: type[Exception] | None,
    known: bool,
    steps: int,
) -> None:
    model, fetch = sequential(keras), Fetch("hidden/Relu:0")
    found = run(model, loop, [fetch, Stop(event, error)], known=known)
    assert fetch.ended
    check_rows(model, loop, found, steps * ROWS)
    # The stop reaches neither this model's next loops nor a `fit`.
    check_rows(model, loop, run(model, loop, [], known=known), len(X))
    assert not model.stop_training
