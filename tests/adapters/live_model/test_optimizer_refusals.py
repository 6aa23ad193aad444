"""Errors say what callbacks cannot do with the optimizer of a session loop."""

from __future__ import annotations

from typing import Any

import pytest
import tensorflow as tf
from callback_loops import STEPS, build, feeds, session_loop

import hookbridge as hb
from hookbridge import errors

ONE_KERAS = True


def test_two_keras_optimizers_in_a_function(keras: Any, keras2: Any) -> None:
    """They have no update ops in the graph, but variables called `learning_rate`."""
    scheduler = keras.callbacks.LearningRateScheduler(lambda epoch: 0.1)
    with tf.Graph().as_default():
        step = tf.compat.v1.train.get_or_create_global_step()
        weights = [tf.compat.v1.get_variable(n, initializer=1.0) for n in "ab"]
        optimizers = [keras2.optimizers.SGD(rate) for rate in (0.1, 0.2)]
        for optimizer, weight in zip(optimizers, weights, strict=True):
            optimizer.build([weight])

        @tf.function  # type: ignore[untyped-decorator]
        def train() -> Any:
            loss = weights[0] ** 2 + weights[1] ** 2
            gradients = tf.gradients(loss, weights)
            for pair in zip(optimizers, gradients, weights, strict=True):
                pair[0].apply_gradients([pair[1:]])
            return loss

        with tf.control_dependencies([tf.identity(train(), name="loss")]):
            step.assign_add(1)
        (hook,) = hb.as_hooks(scheduler, steps_per_epoch=2)
        with pytest.raises(errors.RefusedError, match="learning_rate_1"):
            hook.begin()
        (hook,) = hb.as_hooks(
            scheduler, steps_per_epoch=2, learning_rate=optimizers[1].learning_rate
        )
        hook.begin()


def test_learning_rate_that_only_the_loop_knows(keras: Any) -> None:
    scheduler = keras.callbacks.LearningRateScheduler(lambda epoch: 0.1)
    with tf.Graph().as_default():
        build(tf.compat.v1.placeholder(tf.float32, [], name="rate"))
        (hook,) = hb.as_hooks(scheduler, steps_per_epoch=2)
        with pytest.raises(errors.RefusedError, match="placeholder_with_default"):
            hook.begin()


def test_learning_rate_that_the_loop_feeds_too(keras: Any) -> None:
    scheduler = keras.callbacks.LearningRateScheduler(lambda epoch: 0.05)
    with tf.Graph().as_default():
        rate = tf.compat.v1.placeholder_with_default(0.1, [], name="rate")
        net = build(rate)
        hooks = hb.as_hooks(scheduler, steps_per_epoch=2)
        with (
            tf.compat.v1.train.MonitoredTrainingSession(hooks=hooks) as session,
            pytest.raises(errors.InvalidArgumentError, match="`feed_dict`"),
        ):
            session.run(net.train_op, {**feeds(net, 0), rate: 0.2})


@pytest.mark.parametrize("name", ["momentum", "beta_1", "weight_decay", "iterations"])
def test_what_cannot_be_set_in_the_optimizer(keras: Any, name: str) -> None:
    seen: list[str] = []

    class Sets(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        def on_train_begin(self, logs: Any = None) -> None:
            with pytest.raises(errors.LiveModelError, match="hookbridge") as caught:
                setattr(self.model.optimizer, name, 0.5)
            seen.append(str(caught.value))
            with pytest.raises(errors.LiveModelError, match=r"get_global_step\(\)"):
                self.model.optimizer.iterations.assign(0)

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            assert int(self.model.optimizer.iterations) == STEPS

    session_loop([Sets()], validate=False, epochs=1)
    assert name in seen[0]
