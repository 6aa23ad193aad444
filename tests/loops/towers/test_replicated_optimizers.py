"""Replicated model functions with every optimizer and in every use."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from replicated_model import assert_same_values, estimator, trained, training_input

import hookbridge as hb
from hookbridge.ground import compat

pytestmark = pytest.mark.slow

v1 = tf.compat.v1
STEPS = 5

WORDS = 6


def loss_of(features: Any, labels: Any) -> Any:
    """A sparse gradient, a dense one, and one that is both."""
    table, both = (
        v1.get_variable(name, [WORDS, 2], initializer=v1.ones_initializer())
        for name in ("table", "both")
    )
    kernel = v1.get_variable("kernel", [2, 1], initializer=v1.ones_initializer())
    rows = [tf.nn.embedding_lookup(each, features["word"]) for each in (table, both)]
    outputs = tf.matmul(rows[0] * rows[1] + tf.reduce_mean(both), kernel)
    return tf.reduce_mean((outputs[:, 0] * features["x"] - labels) ** 2)


def data() -> Any:
    rng = np.random.default_rng(1)
    x, word = rng.normal(size=40), rng.integers(0, WORDS, size=40)
    examples = {"x": x.astype(np.float32), "word": word}, (x * word).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices(examples).repeat().batch(8)


# Each gets the variable of its steps.
OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "sgd": lambda step: v1.train.GradientDescentOptimizer(0.02),
    "momentum": lambda step: v1.train.MomentumOptimizer(0.02, 0.9, use_nesterov=True),
    "adam": lambda step: v1.train.AdamOptimizer(0.05),
    "adagrad": lambda step: v1.train.AdagradOptimizer(0.1),
    "adagrad_da": lambda step: v1.train.AdagradDAOptimizer(0.1, step),
    "adadelta": lambda step: v1.train.AdadeltaOptimizer(1.0),
    "rmsprop": lambda step: v1.train.RMSPropOptimizer(0.05, centered=True),
    "ftrl": lambda step: v1.train.FtrlOptimizer(0.1),
    "proximal_sgd": lambda step: v1.train.ProximalGradientDescentOptimizer(0.02),
    "proximal_adagrad": lambda step: v1.train.ProximalAdagradOptimizer(0.1),
}


def batch() -> Any:
    return v1.data.make_one_shot_iterator(data()).get_next()


def assert_towers_train_as_one(model_fn: Any, towers: int) -> tuple[Any, Any]:
    losses, values = trained(model_fn, batch, STEPS)
    replicated = hb.replicate_model_fn(model_fn, num_towers=towers)
    own_losses, own_values = trained(replicated, batch, STEPS)
    assert own_losses == pytest.approx(losses, rel=1e-4)
    assert_same_values(own_values, values)
    return losses, values


@pytest.mark.one_tensorflow
def test_towers_give_the_losses_and_weights_of_one(subtests: pytest.Subtests) -> None:
    """With every optimizer, each on variables of its own."""

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        losses, updates = [], []
        for name, make in OPTIMIZERS.items():
            with v1.variable_scope(name):
                loss = loss_of(features, labels)
                step = v1.get_variable(
                    "step", (), tf.int64, v1.zeros_initializer(), trainable=False
                )
                own = v1.trainable_variables(f"{name}/")
                updates.append(make(step).minimize(loss, step, var_list=own))
            losses.append(loss)
        loss = tf.add_n(losses)
        return hb.loops.TowerSpec(loss, train_op=tf.group(*updates))

    _, values = assert_towers_train_as_one(model_fn, 2)
    for name in OPTIMIZERS:
        with subtests.test(str(name)):
            assert np.abs(values[f"{name}/table"] - 1).max() > 1e-3  # it was trained
            assert values[f"{name}/step"] == STEPS


def test_the_step_without_data_updates_nothing() -> None:
    """Adam changes its moments even without gradients."""

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        loss = loss_of(features, labels)
        train_op = v1.train.AdamOptimizer(0.1).minimize(loss)
        return hb.loops.TowerSpec(loss, train_op=train_op)

    with tf.Graph().as_default():
        v1.train.create_global_step()
        batch = v1.data.make_one_shot_iterator(data().take(2)).get_next()
        replicated = hb.replicate_model_fn(model_fn, num_towers=4)
        train_op = replicated(*batch, "train").train_op
        variables = v1.global_variables()
        config = hb.loops.session_config(hb.loops.tower_devices(4))
        with v1.Session(config=config) as session:
            session.run(v1.global_variables_initializer())
            session.run(train_op)
            session.run(train_op)
            before = session.run(variables)
            with pytest.raises(tf.errors.OutOfRangeError):
                session.run(train_op)
            np.testing.assert_equal(before, session.run(variables))


def test_optimizers_of_keras_2_that_are_no_legacy_ones(keras2: Any) -> None:
    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        loss, variables = loss_of(features, labels), v1.trainable_variables()
        pairs = zip(tf.gradients(loss, variables), variables, strict=True)
        train_op = keras2.optimizers.Adagrad(0.1).apply_gradients(list(pairs))
        return hb.loops.TowerSpec(loss, train_op=train_op)

    losses, _ = assert_towers_train_as_one(model_fn, 4)
    assert losses[-1] != losses[0]


def test_optimizers_of_keras_3_are_refused_by_name(keras: Any, tmp_path: Path) -> None:
    is_keras_3 = compat.is_keras3(keras)
    adam = keras.optimizers.Adam if is_keras_3 else keras.optimizers.legacy.Adam
    own = vars(adam).get("apply"), vars(adam.__mro__[1]).get("apply")

    def with_adam(features: Any, labels: Any, mode: str) -> Any:
        weight = v1.get_variable("weight", [])
        loss = tf.reduce_mean(features["x"]) * weight
        pairs = [(tf.gradients(loss, weight)[0], weight)]
        optimizer = adam(0.1)
        if not is_keras_3:
            optimizer.iterations = v1.train.get_global_step()
        update = optimizer.apply_gradients(pairs)
        return hb.estimator.EstimatorSpec(mode, loss=loss, train_op=update)

    job = estimator(hb.replicate_model_fn(with_adam, num_towers=2), tmp_path)
    if is_keras_3:
        with pytest.raises(hb.errors.RefusedError, match="Keras 3 optimizer `Adam`"):
            job.train(training_input)
    else:
        job.train(training_input)
        assert job.get_variable_value("global_step") == STEPS
    assert own == (vars(adam).get("apply"), vars(adam.__mro__[1]).get("apply"))
