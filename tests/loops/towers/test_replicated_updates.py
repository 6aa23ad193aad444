"""What a model function does around its updates is the same in towers as without."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from replicated_model import assert_same_values, trained

import hookbridge as hb

v1 = tf.compat.v1
BATCH = 8


def examples() -> Any:
    rng = np.random.default_rng(7)
    # The features of all towers are equal, so averages over one share equal those over
    # the batch.
    x = np.tile(rng.normal(size=(2, 4)), (BATCH // 2, 1)).astype(np.float32)
    noise = rng.normal(size=(BATCH, 1)).astype(np.float32)
    return x, x.sum(axis=1, keepdims=True) ** 2 + noise


def weight_and_loss(features: Any, labels: Any) -> tuple[Any, Any]:
    weight = v1.get_variable("w", [4, 1], initializer=v1.ones_initializer())
    losses = tf.reduce_sum((features @ weight - labels) ** 2, axis=1)
    return weight, tf.reduce_mean(losses)


def sgd(loss: Any, **more: Any) -> Any:
    optimizer = v1.train.GradientDescentOptimizer(0.01)
    return optimizer.minimize(loss, v1.train.get_global_step(), **more)


def spec(loss: Any, train_op: Any) -> Any:
    return hb.estimator.EstimatorSpec("train", loss=loss, train_op=train_op)


def one_update_after_the_other(features: Any, labels: Any, mode: str) -> Any:
    weight, loss = weight_and_loss(features, labels)
    first = sgd(loss)
    with tf.control_dependencies([first]):
        moved = weight.read_value()
        loss = tf.reduce_mean((features @ moved - labels) ** 2)
        gradient = tf.gradients(loss, moved)[0]
    optimizer = v1.train.GradientDescentOptimizer(0.01)
    return spec(loss, optimizer.apply_gradients([(gradient, weight)]))


def regularised_sum(features: Any, labels: Any, mode: str) -> Any:
    with v1.variable_scope("l2", regularizer=lambda w: 0.5 * tf.reduce_sum(w * w)):
        _, mean = weight_and_loss(features, labels)
    size = tf.cast(tf.shape(labels)[0], tf.float32)
    loss = 0.1 * size * mean + v1.losses.get_regularization_loss()
    return spec(loss, sgd(loss))


def counter() -> Any:
    return v1.get_variable("seen", [], initializer=v1.zeros_initializer())


def counter_before_the_update(features: Any, labels: Any, mode: str) -> Any:
    weight, loss = weight_and_loss(features, labels)
    with tf.control_dependencies([tf.group(counter().assign_add(1.0))]):
        return spec(loss, sgd(loss, var_list=[weight]))


def counter_in_the_loss(features: Any, labels: Any, mode: str) -> Any:
    weight, loss = weight_and_loss(features, labels)
    loss *= counter().assign_add(1.0)
    return spec(loss, sgd(loss, var_list=[weight]))


def reference_counter_in_the_loss(features: Any, labels: Any, mode: str) -> Any:
    with v1.variable_scope("old", use_resource=False):
        return counter_in_the_loss(features, labels, mode)


def own_optimizer_class(features: Any, labels: Any, mode: str) -> Any:
    class Clipped(tf.compat.v1.train.MomentumOptimizer):  # type: ignore[misc]
        def apply_gradients(self, pairs: Any, *args: Any, **kwargs: Any) -> Any:
            clipped = [(tf.clip_by_norm(g, 0.5), v) for g, v in pairs]
            return super().apply_gradients(clipped, *args, **kwargs)

    _, loss = weight_and_loss(features, labels)
    return spec(loss, Clipped(0.1, 0.9).minimize(loss))


def optimizer_in_a_scope(features: Any, labels: Any, mode: str) -> Any:
    with v1.variable_scope("model"):
        weight, loss = weight_and_loss(features, labels)
        steps = [
            v1.train.AdamOptimizer(0.01).minimize(each, var_list=[weight])
            for each in (loss, 2 * loss)  # each has its own moments
        ]
    return spec(loss, tf.group(*steps))


def with_a_factor(features: Any, labels: Any, factor: float, mode: str) -> Any:
    loss = factor * weight_and_loss(features, labels)[1]
    return spec(loss, sgd(loss))


def tf_variables(features: Any, labels: Any, mode: str) -> Any:
    """Variables that `get_variable` does not find, in a spec without an Estimator."""
    kernel = tf.Variable(tf.ones([4, 1]))
    bias = v1.get_variable("bias", [1], initializer=v1.zeros_initializer())
    scale = tf.Variable(1.0, name="scale")
    losses = ((features @ kernel + bias) * scale - labels) ** 2
    loss = tf.reduce_mean(losses)
    train_op = v1.train.AdamOptimizer(0.01).minimize(loss)
    return hb.loops.TowerSpec(loss, {"twice": 2 * loss}, losses, train_op)


MODELS: dict[str, Callable[..., Any]] = {
    "two_updates": one_update_after_the_other,
    "sum": regularised_sum,
    "counter": counter_before_the_update,
    "counter_in_loss": counter_in_the_loss,
    "reference_counter": reference_counter_in_the_loss,
    "class": own_optimizer_class,
    "tf_variables": tf_variables,
    "scope": optimizer_in_a_scope,
    "partial": functools.partial(with_a_factor, factor=0.5),
}


def batch() -> Any:
    return tuple(map(tf.constant, examples()))


def assert_towers_train_as_one(model_fn: Any, **arguments: Any) -> dict[str, Any]:
    losses, values = trained(model_fn, batch)
    # One tower takes the same way through all of it; it is tried with one model.
    for towers in (1, 4) if model_fn is counter_before_the_update else (4,):
        replicated = hb.replicate_model_fn(model_fn, num_towers=towers, **arguments)
        own_losses, own_values = trained(replicated, batch)
        assert own_losses == pytest.approx(losses, rel=1e-4)
        assert_same_values(own_values, values)
    return values


ON_BOTH = ("counter", "scope", "sum")


@pytest.mark.parametrize(
    "model",
    [
        pytest.param(m, marks=[] if m in ON_BOTH else pytest.mark.one_tensorflow)
        for m in sorted(MODELS)
    ],
)
def test_towers_do_what_the_model_function_does(model: str) -> None:
    reduction = "sum" if model == "sum" else "mean"
    values = assert_towers_train_as_one(MODELS[model], loss_reduction=reduction)
    assert values.get("seen", 3) == 3


def test_averages_of_a_keras_layer_that_the_update_waits_for(keras2: Any) -> None:
    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        layer = keras2.layers.BatchNormalization(momentum=0.9)
        model = keras2.Sequential([layer])
        weight, loss = weight_and_loss(model(features, training=True), labels)
        with tf.control_dependencies(model.updates):
            return spec(loss, sgd(loss, var_list=[weight]))

    values = assert_towers_train_as_one(model_fn)
    (mean,) = (v for name, v in values.items() if name.endswith("moving_mean"))
    assert np.abs(mean).max() > 0


@pytest.mark.parametrize(
    ("numbers", "message"),
    [((1, 2), "`scale` that tower 0 did not make"), ((2, 1), "Tower 1 did not make")],
)
def test_towers_that_make_different_variables_are_refused(
    numbers: tuple[int, int], message: str
) -> None:
    wanted = iter(numbers)

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        scales = [tf.Variable(1.0, name="scale") for _ in range(next(wanted))]
        return with_a_factor(features, labels, scales[0], mode)

    with pytest.raises(hb.errors.InvalidArgumentError, match=message):
        trained(hb.replicate_model_fn(model_fn, num_towers=2), batch)


def test_estimator_sees_the_arguments_that_a_partial_leaves() -> None:
    partial = functools.partial(with_a_factor, factor=2.0)
    estimator = hb.estimator.Estimator(hb.replicate_model_fn(partial, num_towers=2))
    assert estimator.train(lambda: tf.data.Dataset.from_tensors(examples()))
    assert estimator.get_variable_value("global_step") == 1


def test_what_the_model_function_clips_is_clipped_in_each_tower() -> None:
    def clips(features: Any, labels: Any, mode: str) -> Any:
        _, loss = weight_and_loss(features, labels)
        optimizer = v1.train.GradientDescentOptimizer(0.1)
        pairs = optimizer.compute_gradients(loss)
        clipped = [(tf.clip_by_norm(g, 0.5), v) for g, v in pairs]
        return spec(
            loss, optimizer.apply_gradients(clipped, v1.train.get_global_step())
        )

    replicated = hb.replicate_model_fn(clips, num_towers=4)
    _, values = trained(replicated, batch, steps=1)
    x, y = examples()
    mean = np.zeros([4, 1])
    for rows in np.split(np.arange(BATCH), 4):
        errors = x[rows].sum(axis=1, keepdims=True) - y[rows]
        gradient = 2 * x[rows].T @ errors / len(rows)
        mean += gradient / np.linalg.norm(gradient) * 0.5 / 4
    # The gradients of the towers differ: their mean is shorter than each of them.
    assert np.linalg.norm(mean) < 0.49
    np.testing.assert_allclose(values["w"], 1 - 0.1 * mean, rtol=1e-5)


@pytest.mark.parametrize("resource", [True, False])
def test_gradients_that_the_model_function_adds_up_are_refused(resource: bool) -> None:
    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        weight, loss = weight_and_loss(features, labels)
        with v1.variable_scope("sum", use_resource=resource):
            start = v1.zeros_initializer()
            total = v1.get_variable("w", [4, 1], initializer=start, trainable=False)
        optimizer = v1.train.GradientDescentOptimizer(0.1)
        (gradient,) = tf.gradients(loss, [weight])
        pairs = [(total.assign_add(gradient), weight)]
        step = v1.train.get_global_step()
        return spec(loss, optimizer.apply_gradients(pairs, global_step=step))

    trained(model_fn, batch)
    with pytest.raises(hb.errors.InvalidArgumentError, match="Tower 1 applies grad"):
        trained(hb.replicate_model_fn(model_fn, num_towers=2), batch)


def test_the_classes_of_optimizers_are_themselves_again_afterwards() -> None:
    optimizer = v1.train.Optimizer
    before = dict(vars(optimizer))

    def fails(features: Any, labels: Any, mode: str) -> Any:
        own_optimizer_class(features, labels, mode)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        trained(hb.replicate_model_fn(fails, num_towers=2), batch)
    trained(hb.replicate_model_fn(own_optimizer_class, num_towers=2), batch)
    assert dict(vars(optimizer)) == before
