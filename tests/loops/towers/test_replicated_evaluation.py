"""Metrics of towers when some towers get no example of the last batch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from replicated_model import estimator

import hookbridge as hb

pytestmark = pytest.mark.slow

v1 = tf.compat.v1
EXAMPLES, BATCH = 11, 2  # the last batch has one example


def data() -> Any:
    rng = np.random.default_rng(6)
    x = rng.normal(size=(EXAMPLES, 4)).astype(np.float32)
    y = (x.sum(axis=1, keepdims=True) > 0).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices((x, y)).batch(BATCH)


def model(metrics: Callable[[Any, Any, Any], dict[str, Any]]) -> Any:
    """A model function with `metrics(labels, outputs, losses)`."""

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        weight = v1.get_variable("w", [4, 1], initializer=v1.ones_initializer())
        outputs = features @ weight
        losses = tf.reduce_sum((outputs - labels) ** 2, axis=1)
        loss = tf.reduce_mean(losses)
        # A scalar is of no example.
        predictions = {"outputs": outputs, "scale": tf.constant(2.0)}
        if mode == "eval":
            return hb.estimator.EstimatorSpec(
                mode,
                loss=loss,
                predictions=predictions,
                eval_metric_ops=metrics(labels, outputs, losses),
            )
        update = v1.train.GradientDescentOptimizer(0.01).minimize(
            loss, global_step=v1.train.get_global_step()
        )
        return hb.estimator.EstimatorSpec(mode, loss=loss, train_op=update)

    return model_fn


def test_a_tower_without_an_example_does_not_count(keras2: Any, tmp_path: Path) -> None:
    def metrics(labels: Any, outputs: Any, losses: Any) -> dict[str, Any]:
        mean, auc = keras2.metrics.Mean(), keras2.metrics.AUC()
        mean.update_state(losses)
        auc.update_state(labels, tf.sigmoid(outputs))
        unused = keras2.metrics.Mean()  # nothing initializes it
        unused.update_state(losses)
        return {
            # A mean over no examples is NaN.
            "loss_of_batches": v1.metrics.mean(
                tf.reduce_mean(losses), weights=tf.shape(losses)[0]
            ),
            "auc": v1.metrics.auc(labels > 0, tf.sigmoid(outputs)),
            "keras_mean": mean,
            "keras_auc": auc,
        }

    plain = estimator(model(metrics), tmp_path)
    plain.train(data, steps=1)
    wanted = plain.evaluate(data)
    assert np.isfinite(list(wanted.values())).all()
    ours = estimator(hb.replicate_model_fn(model(metrics), num_towers=4), tmp_path)
    assert ours.evaluate(data) == pytest.approx(wanted, rel=1e-4)


@pytest.mark.one_tensorflow
def test_a_canned_estimator_evaluates_in_towers(keras2: Any, tmp_path: Path) -> None:
    def inputs() -> Any:
        return data().map(lambda x, y: ({"x": x}, y))

    columns = [tf.feature_column.numeric_column("x", [4])]
    plain = hb.estimator.LinearRegressor(columns, str(tmp_path))
    plain.train(inputs)
    names = set(plain.get_variable_names())
    wanted = plain.evaluate(inputs)
    ours = estimator(hb.replicate_model_fn(plain._model_fn, num_towers=2), tmp_path)
    assert ours.evaluate(inputs) == pytest.approx(wanted, rel=1e-4)
    ours.train(lambda: inputs().take(5))  # goes on from the plain job's checkpoint
    assert set(ours.get_variable_names()) == names


def test_a_metric_whose_variable_the_towers_share_is_refused(tmp_path: Path) -> None:
    def metrics(labels: Any, outputs: Any, losses: Any) -> dict[str, Any]:
        most = v1.get_variable(
            "most", [], trainable=False, collections=[v1.GraphKeys.LOCAL_VARIABLES]
        )
        return {"most": (most, most.assign(tf.reduce_max(losses)))}

    plain = estimator(model(metrics), tmp_path)
    plain.train(data, steps=1)
    ours = estimator(hb.replicate_model_fn(model(metrics), num_towers=2), tmp_path)
    with pytest.raises(hb.errors.InvalidArgumentError, match="separate variables"):
        ours.evaluate(data)
