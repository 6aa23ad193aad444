"""Learning rates in `fit`: those that the step reads, whichever optimizer has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from eager_steps import descended
from hook_fetching import hook_of, rate_hook, run_loop, sequential, with_step

from hookbridge import errors
from hookbridge.adapters.keras_model.optimizers import name_of

v1: Any = tf.compat.v1
train: Any = v1.train


def far(model: Any, x: Any, y: Any) -> Any:
    return tf.reduce_mean((model(x) - y) ** 2)


def own_optimizer(keras: Any, *, run_eagerly: bool = False) -> Any:
    """Its step uses an optimizer of the model's own; that of `compile` is idle."""

    def step(model: Any, x: Any, y: Any) -> Any:
        return {"loss": descended(model, lambda: far(model, x, y), model.second)}

    model = with_step(keras, step, "sgd", run_eagerly=run_eagerly)
    model.second = keras.optimizers.SGD(0.5)
    return model


@pytest.mark.parametrize("run_eagerly", [False, True])
def test_rate_of_an_optimizer_that_only_the_step_knows(
    keras: Any, run_eagerly: bool
) -> None:
    model = own_optimizer(keras, run_eagerly=run_eagerly)
    before = model.get_weights()
    hook = rate_hook("second/learning_rate:0", None)
    run_loop(model, hook)
    assert hook.seen == [0.5] * 4
    assert not np.array_equal(model.get_weights()[0], before[0])
    before = model.get_weights()
    run_loop(model, rate_hook("second/learning_rate:0", 0.0))
    np.testing.assert_array_equal(model.get_weights()[0], before[0])
    assert float(np.asarray(model.second.learning_rate)) == 0.5


@pytest.mark.parametrize("is_scaled", [False, True])
def test_rate_of_an_optimizer_with_decay(keras2: Any, is_scaled: bool) -> None:
    """Those of Keras 2.10 and before divide the rate by what no variable shows."""
    optimizer = keras2.optimizers.legacy.SGD(0.5, decay=0.25)
    if is_scaled:
        optimizer = keras2.mixed_precision.LossScaleOptimizer(optimizer)
    model = sequential(keras2)
    model.compile(optimizer, "mse")
    hook = rate_hook("learning_rate:0", None)
    own = rate_hook(f"{name_of(optimizer)}/learning_rate:0", None)
    run_loop(model, hook, own)
    decayed = [0.5 / (1 + 0.25 * step) for step in range(4)]
    np.testing.assert_allclose(hook.seen, decayed, 1e-6)
    assert own.seen == [0.5] * 4  # the variable that callbacks set
    before = model.get_weights()
    run_loop(model, rate_hook("learning_rate:0", 0.0))
    np.testing.assert_array_equal(model.get_weights()[0], before[0])
    # What is fed is the rate of the step: the decay does not divide it again.
    native = sequential(keras2)
    native.set_weights(before)
    native.compile(keras2.optimizers.legacy.SGD(0.25), "mse")
    run_loop(native)
    run_loop(model, rate_hook("learning_rate:0", 0.25))
    np.testing.assert_allclose(model.get_weights()[0], native.get_weights()[0], 1e-6)


def test_a_rate_may_be_a_function(keras: Any) -> None:
    """Keras 3 calls one in each step, and so do optimizers of Keras 2.10 and before."""
    rate = tf.Variable(0.5)
    is_keras3 = hasattr(keras, "ops")
    optimizers = keras.optimizers if is_keras3 else keras.optimizers.legacy
    model = sequential(keras)
    model.compile(optimizers.SGD(lambda: rate / 2.0), "mse")
    run_loop(model, hook := rate_hook())
    rate.assign(0.25)
    run_loop(model, hook)
    assert hook.seen == [0.25] * 4 + [0.125] * 4
    before = model.get_weights()
    run_loop(model, rate_hook("learning_rate:0", 0.0))
    np.testing.assert_array_equal(model.get_weights()[0], before[0])


def test_a_schedule_of_an_optimizer_of_keras_2_10_gets_a_float(keras2: Any) -> None:
    class Falling(keras2.optimizers.schedules.LearningRateSchedule):  # type: ignore[misc, name-defined]
        def __call__(self, step: Any) -> Any:
            return 0.5 / (1.0 + step)  # fails for an integer

        def get_config(self) -> dict[str, Any]:
            return {}

    model, hook = sequential(keras2), rate_hook("learning_rate:0", None)
    model.compile(keras2.optimizers.legacy.SGD(Falling()), "mse")
    run_loop(model, hook)
    np.testing.assert_allclose(hook.seen, [0.5 / (1 + step) for step in range(4)])


@pytest.mark.parametrize("feed", [None, 0.0])
def test_rate_that_the_step_does_not_read(keras: Any, feed: float | None) -> None:
    model = own_optimizer(keras)
    before = model.get_weights()
    with pytest.raises(
        errors.UnknownTensorError,
        match=r"(?s)does not read.*`second/learning_rate:0`.*`Functions` requested",
    ):
        run_loop(model, rate_hook("learning_rate:0", feed))
    np.testing.assert_array_equal(model.get_weights()[0], before[0])
    run_loop(model)  # the model is as it was


def test_a_feed_that_an_eager_step_does_not_read(keras: Any) -> None:
    model = own_optimizer(keras, run_eagerly=True)
    with pytest.raises(errors.LiveSessionError, match="has not used this optimizer"):
        run_loop(model, rate_hook("learning_rate:0", 0.0))


def test_rates_of_several_optimizers_in_one(
    subtests: pytest.Subtests, keras3: Any
) -> None:
    optimizers = keras3.optimizers
    one, two = optimizers.SGD(0.05), optimizers.SGD(0.02)
    model = sequential(keras3)
    model.compile(
        optimizers.MultiOptimizer(lambda v: one if "hidden" in v.path else two), "mse"
    )
    for feed in (None, 0.0):
        with subtests.test(str(feed)):
            with pytest.raises(errors.UnknownTensorError, match="reads: `multi_opt"):
                run_loop(model, rate_hook("learning_rate:0", feed))
    with pytest.raises(errors.UnknownTensorError) as e:
        run_loop(model, rate_hook("learning_rate:0", None))
    first, second = str(e.value).split("reads: `")[1].split("`")[0:3:2]
    for name, rate in ((first, 0.05), (second, 0.02)):
        with subtests.test(str(name)):
            hook = rate_hook(name, None)
            run_loop(model, hook)
            assert hook.seen[0] == pytest.approx(rate)
    before = model.get_weights()
    run_loop(model, rate_hook(second, 0.0))
    after = model.get_weights()
    assert not np.array_equal(after[0], before[0])  # of the first optimizer
    np.testing.assert_array_equal(after[2], before[2])


def test_a_feed_of_a_variable_is_refused(keras: Any) -> None:
    """The step reads the variable itself."""
    model = sequential(keras)
    before = model.get_weights()
    feeds = {"out/bias:0": np.ones(1)}
    feed = hook_of(
        before_run=lambda self, context: train.SessionRunArgs(None, feeds),
    )
    with pytest.raises(errors.LiveSessionError, match=r"`out/bias:0`, .*variable.load"):
        run_loop(model, feed)
    np.testing.assert_array_equal(model.get_weights()[0], before[0])


@pytest.mark.parametrize(
    ("loop", "name"),
    [
        ("fit", "mae:0"),
        ("fit", "unread:0"),
        ("evaluate", "learning_rate:0"),
        ("predict", "learning_rate:0"),
        ("session", "learning_rate:0"),
    ],
)
def test_a_feed_that_nothing_in_the_step_reads(
    keras2: Any, loop: str, name: str
) -> None:
    """It changes nothing, as in a session whose fetches do not read the tensor."""

    def step(model: Any, x: Any, y: Any) -> Any:
        tf.reduce_sum(x, name="unread")
        return {"loss": descended(model, lambda: far(model, x, y))}

    def before_run(self: Any, context: Any) -> Any:
        return train.SessionRunArgs(None, {name: 0.0})

    def results(*guests: Any) -> Any:
        if loop == "session":
            with tf.Graph().as_default():
                tf.constant(0.5, name="learning_rate")
                weight = v1.get_variable("w", initializer=2.0)
                with train.MonitoredSession(hooks=guests) as running:
                    return [running.run(weight)]
        keras2.utils.set_random_seed(0)
        own = name == "unread:0"
        model = with_step(keras2, step, "sgd") if own else sequential(keras2)
        made = run_loop(model, *guests, loop=loop)
        return model.get_weights() if loop == "fit" else made

    for with_feed, without in zip(
        results(hook_of(before_run=before_run)), results(), strict=True
    ):
        np.testing.assert_array_equal(with_feed, without)
