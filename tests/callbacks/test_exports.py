"""`SavedModelExporter` in `fit` and in session loops."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from ramps import fit_ramp, served

import hookbridge as hb

v1 = tf.compat.v1


def test_export_from_fit(keras: Any, tmp_path: Path) -> None:
    exporter = hb.callbacks.SavedModelExporter(str(tmp_path / "model"))
    model = fit_ramp(keras, [exporter])
    x = np.array([[1.0], [-2.0]], "float32")
    np.testing.assert_allclose(served(tmp_path / "model", x), model.predict(x))
    fit_ramp(keras, [exporter], epochs=1)  # replaces the first export
    np.testing.assert_allclose(served(tmp_path / "model", x), x * 27.0)
    assert sorted(tmp_path.iterdir()) == [tmp_path / "model"]


def test_export_of_a_keras_model_in_a_session(keras2: Any, tmp_path: Path) -> None:
    exporter = hb.callbacks.SavedModelExporter()
    x = np.array([[1.0], [-2.0]], "float32")
    with tf.Graph().as_default():
        layer = keras2.layers.Dense(1, use_bias=False, kernel_initializer="zeros")
        model = keras2.Sequential([keras2.Input([1]), layer])
        loss = tf.reduce_mean(-model(tf.ones([2, 1])))
        step = v1.train.get_or_create_global_step()
        train_op = v1.train.GradientDescentOptimizer(0.5).minimize(loss, step)
        params = {"saved_model_path": str(tmp_path / "model")}
        hooks = hb.as_hooks([exporter], model=model, params=params)
        with v1.train.MonitoredTrainingSession(hooks=hooks) as session:
            for _ in range(3):
                session.run(train_op)
    np.testing.assert_allclose(served(tmp_path / "model", x), x * 1.5)


def slope_fn(features: Any, labels: Any, mode: str, params: Any) -> Any:
    """A `model_fn` that learns one slope."""
    slope = v1.get_variable("slope", [], initializer=v1.zeros_initializer())
    predictions = {"y": features["x"] * slope}
    if mode == hb.estimator.ModeKeys.PREDICT:
        return hb.estimator.EstimatorSpec(mode, predictions=predictions)
    loss = -slope * tf.reduce_mean(features["x"])  # the mean is 1 below
    step = v1.train.get_or_create_global_step()
    train_op = v1.train.GradientDescentOptimizer(params["rate"]).minimize(loss, step)
    return hb.estimator.EstimatorSpec(
        mode, predictions=predictions, loss=loss, train_op=train_op
    )


def slope_input(x: Any) -> Callable[[], Any]:
    return lambda: tf.data.Dataset.from_tensors(({"x": x}, x))


def serving_input_fn() -> Any:
    x = v1.placeholder(tf.float32, [None], name="x")
    return hb.estimator.export.ServingInputReceiver({"x": x}, {"x": x})


def test_export_and_predictions_of_a_model_fn(tmp_path: Path) -> None:
    params = {"rate": 0.25}
    x = np.array([1.0, -2.0, 4.0], "float32")
    exporter = hb.callbacks.SavedModelExporter(
        str(tmp_path / "model"),
        model_fn=slope_fn,
        serving_input_fn=serving_input_fn,
        model_params=params,
    )
    estimator = hb.estimator.Estimator(slope_fn, str(tmp_path / "run"), params=params)
    for _ in range(2):
        estimator.train(slope_input(x), hooks=hb.as_hooks([exporter]))
    np.testing.assert_allclose(served(tmp_path / "model", x), x * 0.5)
    got: list[Any] = []
    processor = hb.callbacks.PredictionOutputsProcessor(got.append)
    hooks = hb.as_hooks([processor])
    list(estimator.predict(slope_input(x), hooks=hooks))
    np.testing.assert_allclose(got[0]["y"], x * 0.5)
