"""Hooks in one `fit` after the other, their feeds, and their stops in other loops."""

from __future__ import annotations

import itertools
from contextlib import nullcontext
from typing import Any

import hook_loops
import numpy as np
import pytest
import tensorflow as tf
from hook_fetching import Fetch, X, Y, hook_of, run_loop, sequential

import hookbridge as hb
from hookbridge import errors

ONE_KERAS = True

v1: Any = tf.compat.v1
train: Any = v1.train


@pytest.mark.slow
def test_compiled_and_fitted_several_times_with_and_without_hooks(keras: Any) -> None:
    model = keras.Sequential([keras.layers.Dense(1)])
    with pytest.raises((RuntimeError, ValueError), match="compile"):  # Keras's own
        run_loop(model, Fetch("loss:0"))
    model, hook = sequential(keras), Fetch("loss:0")
    run_loop(model)
    validated = run_loop(model, hook, validation_data=(X, Y))
    assert hook.steps == [4, 5, 6, 7]  # validation calls no hook
    assert "val_mae" in validated.history
    run_loop(model)
    assert len(hook.seen) == 4  # a fit without hooks calls none
    model.compile("adam", "mse")
    run_loop(model, hook)
    assert hook.steps == [0, 1, 2, 3]  # a new optimizer counts from zero
    model.evaluate(X, Y, verbose=0)
    run_loop(model)
    assert len(hook.seen) == 4


@pytest.mark.parametrize("loop", ["fit", "evaluate"])
def test_a_list_of_callbacks_that_a_loop_has_used_is_refused(
    keras: Any, loop: str
) -> None:
    """Keras would not tell the hook that a loop begins."""
    model, hook = sequential(keras), Fetch("loss:0")

    def used(name: str, callbacks: Any) -> None:
        getattr(model, name)(X, Y, batch_size=16, verbose=0, callbacks=callbacks)

    def new_list() -> Any:
        guests = hb.as_callbacks([hook])
        return keras.callbacks.CallbackList(guests, add_history=True, model=model)

    listed = new_list()
    used("fit", listed)
    seen, weights = len(hook.seen), model.get_weights()
    assert seen > 0
    with pytest.raises(errors.RefusedError, match="a new `CallbackList` for each loop"):
        used(loop, listed)
    assert len(hook.seen) == seen
    for before, after in zip(weights, model.get_weights(), strict=True):
        np.testing.assert_array_equal(before, after)
    hook.seen.clear()
    used(loop, new_list())
    assert len(hook.seen) == seen


def test_a_list_of_callbacks_of_a_fit_that_failed_is_refused(keras: Any) -> None:
    class Fails(train.SessionRunHook):  # type: ignore[misc]
        def after_run(self, run_context: Any, run_values: Any) -> None:
            raise ArithmeticError

    model, guests = sequential(keras), hb.as_callbacks([Fails()])
    listed = keras.callbacks.CallbackList(guests, add_history=True, model=model)
    for error in (ArithmeticError, errors.RefusedError):
        with pytest.raises(error):
            model.fit(X, Y, batch_size=16, verbose=0, callbacks=listed)


class Feeder(Fetch):
    """Feeds the first of its tensors a value per step."""

    def __init__(self, values: list[float], *names: str) -> None:
        super().__init__(*names)
        self.values = values

    def before_run(self, run_context: Any) -> Any:
        feeds = {self.tensors[0]: self.values[len(self.seen)]}
        return train.SessionRunArgs([self.step, self.tensors], feed_dict=feeds)


def test_a_fed_rate_takes_the_place_of_a_schedules(keras: Any) -> None:
    model = sequential(keras)
    schedule = keras.optimizers.schedules.ExponentialDecay(0.1, 1, 0.5)
    model.compile(keras.optimizers.SGD(schedule), "mse")
    hook = Feeder([0.3, 0.0], "learning_rate:0", "gradients/hidden/kernel:0")
    before = model.get_weights()[0]
    run_loop(model, hook, batch_size=16)
    np.testing.assert_allclose(
        model.get_weights()[0], before - 0.3 * hook.seen[0][1], rtol=1e-4, atol=1e-6
    )
    fetch = Fetch("learning_rate:0")  # the schedule itself goes on
    run_loop(model, fetch, batch_size=16)
    assert fetch.seen[0][0] == pytest.approx(0.025)


def _checked(keras: Any) -> Any:
    """A model that fails on values of 2 and above."""

    class Checked(keras.layers.Layer):  # type: ignore[misc, name-defined]
        def call(self, inputs: Any) -> Any:
            with tf.control_dependencies([tf.debugging.assert_less(inputs, 2.0)]):
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
    scope = (
        hook_loops.mirrored().scope() if how.pop("strategy", False) else nullcontext()
    )
    with scope:
        model = _checked(keras)
        model.compile(keras.optimizers.SGD(0.125), "mse", jit_compile=False, **how)
    x = np.concatenate([X[:16], 9 * X[:16] + 9]) if end == "error" else X
    data = tf.data.Dataset.from_tensor_slices((x, Y)).batch(8).filter(lambda *_: True)
    hook = Feeder([0.5] * 5, "learning_rate:0")
    fails = pytest.raises(tf.errors.InvalidArgumentError)
    with fails if end == "error" else nullcontext():
        run_loop(model, hook, data=(data,), batch_size=None)
    assert [rate for (rate,) in hook.seen] == [0.5] * (2 if end == "error" else 4)
    assert float(np.asarray(model.optimizer.learning_rate)) == 0.125


def test_a_tensor_of_the_step_is_fed_where_it_has_a_graph(keras: Any) -> None:
    class Scaled(keras.layers.Layer):  # type: ignore[misc, name-defined]
        def call(self, inputs: Any) -> Any:
            return inputs * v1.placeholder_with_default(1.0, [], name="scale")

    layers = [keras.Input((4,)), Scaled(name="scaled"), keras.layers.Dense(1)]
    model = keras.Sequential(layers)
    model.compile(keras.optimizers.SGD(0.0), "mse", jit_compile=False)
    hook = Feeder([1.0, 0.0], "scaled/scale:0", "loss:0")
    run_loop(model, hook, data=(X[:16], Y[:16]))
    untouched = model.evaluate(X[:8], Y[:8], verbose=0)
    zeroed = model.evaluate(0 * X[8:16], Y[8:16], verbose=0)
    assert [s[1] for s in hook.seen] == pytest.approx([untouched, zeroed], rel=1e-4)
    model = sequential(keras, run_eagerly=True)
    before = model.get_weights()
    with pytest.raises(errors.LiveSessionError, match="cannot be fed here"):
        run_loop(model, Feeder([1.0], "loss:0"))
    np.testing.assert_array_equal(model.get_weights()[0], before[0])


# The event in which a hook ends the second run, by which error, whether the number of
# batches is known, and how many steps are made.
STOPS: list[tuple[str, type[Exception] | None, bool, int]] = [
    ("before_run", None, True, 2),
    ("after_run", None, True, 2),
    ("after_run", None, False, 2),
    ("after_run", StopIteration, True, 2),
    ("before_run", StopIteration, True, 1),
]


def stopping(event: str, error: type[Exception] | None) -> Any:
    """A hook that asks for a stop, or raises an error, in its second run."""
    runs = itertools.count(1)

    def stop(hook: Any, context: Any, *values: Any) -> None:
        if next(runs) == 2:
            if error is not None:
                raise error("a hook")
            context.request_stop()

    return hook_of("Stopping", **{event: stop})


@pytest.mark.parametrize("loop", ["evaluate", "predict"])
def test_a_stop_ends_the_loop(subtests: pytest.Subtests, keras: Any, loop: str) -> None:
    model = sequential(keras)

    def run(rows: int, *hooks: Any, is_known: bool = True) -> Any:
        data = tf.data.Dataset.from_tensor_slices((X[:rows], Y[:rows])).batch(8)
        data = data if is_known else data.filter(lambda *_: True)
        return run_loop(model, *hooks, loop=loop, data=(data,), batch_size=None)

    whole = run(len(X))
    for event, error, is_known, steps in STOPS:
        with subtests.test(str(event)):
            fetch = Fetch("hidden/Relu:0")
            found = run(len(X), fetch, stopping(event, error), is_known=is_known)
            assert fetch.ended
            np.testing.assert_allclose(found, run(8 * steps), rtol=1e-5)
            # The stop reaches neither this model's next loops nor a `fit`.
            np.testing.assert_allclose(run(len(X), is_known=is_known), whole, rtol=1e-5)
            assert not model.stop_training
