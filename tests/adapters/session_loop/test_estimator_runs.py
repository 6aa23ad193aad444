"""Callbacks in the train, evaluate and predict of `tf.estimator`."""

from __future__ import annotations

import importlib
import importlib.util
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from callback_recorder import noting
from estimator_models import (
    KERAS2,
    MODEL,
    STEPS,
    Y,
    bare_model_fn,
    estimators,
    eval_input,
    keras_model_fn,
    predict_input,
    train_input,
)

import hookbridge as hb

ONE_KERAS = True


EVENTS = [
    f"on_{m}_{e}"
    for m in ("train", "test", "predict")
    for e in ("begin", "batch_begin", "batch_end", "end")
] + ["on_epoch_begin", "on_epoch_end"]


def recorder(keras: Any, log: list[Any]) -> Any:
    return noting(keras, lambda self, *event: log.append(event), EVENTS)


@pytest.fixture(params=["bare", "keras"])
def estimator(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    function = {"bare": bare_model_fn, "keras": keras_model_fn}[request.param]
    config = estimators.RunConfig(str(tmp_path / "model"), tf_random_seed=1)
    return estimators.Estimator(function, config=config)


def options(estimator: Any) -> dict[str, Any]:
    uses_keras = estimator._model_fn is keras_model_fn
    return {
        "steps_per_epoch": STEPS,
        "model": (lambda: MODEL["model"]) if uses_keras else None,
    }


@pytest.mark.slow
def test_train_with_validation_by_the_estimator(
    keras: Any, estimator: Any, tmp_path: Path
) -> None:
    log: list[Any] = []
    hooks_of_evaluation: list[int] = []

    class EvalHook(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
        def end(self, session: Any) -> None:
            step = tf.compat.v1.train.get_global_step()
            hooks_of_evaluation.append(int(session.run(step)))

    spec = estimators.EvalSpec(eval_input, steps=None, hooks=[EvalHook()])
    history = keras.callbacks.History()
    csv = tmp_path / "log.csv"
    hooks = hb.as_hooks(
        [
            recorder(keras, log),
            keras.callbacks.EarlyStopping(
                "val_mae", patience=1, min_delta=0.05, restore_best_weights=True
            ),
            keras.callbacks.CSVLogger(str(csv)),
            keras.callbacks.TensorBoard(str(tmp_path / "tb"), histogram_freq=1),
            keras.callbacks.ModelCheckpoint(
                str(tmp_path / "w{epoch}.weights.h5"), save_weights_only=True
            ),
            history,
        ],
        epochs=30,
        validation=(estimator, spec),
        **options(estimator),
    )
    estimator.train(train_input, hooks=hooks)
    epochs = len(history.history["loss"])
    assert 1 < epochs < 30
    assert list(history.history) == ["loss", "val_loss", "val_mae"]
    assert estimator.get_variable_value("global_step") == epochs * STEPS
    # The validation saw the variables of the step at which each epoch ended.
    assert hooks_of_evaluation == [STEPS * (e + 1) for e in range(epochs)]
    counts = Counter(e[0] for e in log)
    assert counts["on_test_begin"] == counts["on_test_end"] == epochs
    assert counts["on_test_batch_end"] == epochs * STEPS
    assert counts["on_train_batch_end"] == epochs * STEPS
    batches = [e for e in log if e[0] == "on_test_batch_end"]
    assert list(batches[0][2]) == ["loss", "mae"]
    ends = [e[1] for e in log if e[0] == "on_test_end"]
    assert batches[STEPS - 1][2] == pytest.approx(ends[0])
    assert len(csv.read_text().splitlines()) == epochs + 1
    assert len(list(tmp_path.glob("w*.h5"))) == epochs


def test_evaluate(keras: Any, estimator: Any) -> None:
    log: list[Any] = []
    estimator.train(train_input, steps=3)
    hooks = hb.as_hooks(recorder(keras, log), **options(estimator))
    result = estimator.evaluate(eval_input, hooks=hooks)
    assert [e[0] for e in log] == [
        "on_test_begin",
        *["on_test_batch_begin", "on_test_batch_end"] * STEPS,
        # This batch meets the end of the data.
        "on_test_batch_begin",
        "on_test_end",
    ]
    assert list(log[-1][1]) == ["loss", "mae"]
    for key, value in log[-1][1].items():
        assert isinstance(value, float)
        assert value == pytest.approx(float(result[key]))
    # Running means, as in Keras.
    assert log[-3][2] == pytest.approx(log[-1][1])


def test_evaluate_with_keras_metrics(keras: Any, tmp_path: Path) -> None:
    log: list[Any] = []
    metrics = importlib.import_module(KERAS2).metrics
    made: dict[str, Any] = {}

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        kernel = tf.compat.v1.get_variable("kernel", [2, 1])
        loss = tf.reduce_mean(tf.square(features @ kernel - labels))
        made["metric"] = metrics.Mean(name="positive")
        made["metric"].update_state(tf.cast(labels > 0, tf.float32))
        return estimators.EstimatorSpec(
            mode,
            loss=loss,
            train_op=tf.compat.v1.train.GradientDescentOptimizer(0.1).minimize(
                loss, global_step=tf.compat.v1.train.get_global_step()
            ),
            eval_metric_ops={"positive": made["metric"]},
        )

    estimator = estimators.Estimator(model_fn, str(tmp_path))
    hooks = hb.as_hooks(
        recorder(keras, log),
        steps_per_epoch=2,
        logs={"positive": lambda: made["metric"]},
    )
    estimator.train(train_input, hooks=hooks, steps=2)
    trained = next(e for e in log if e[0] == "on_epoch_end")
    assert trained[2]["positive"] == pytest.approx(float(np.mean(Y[:8] > 0)))
    result = estimator.evaluate(eval_input, hooks=hooks)
    assert log[-1][1] == pytest.approx(
        {k: float(v) for k, v in result.items() if k != "global_step"}
    )
    assert log[-3][2] == pytest.approx(log[-1][1])


def test_predict(keras: Any, estimator: Any) -> None:
    log: list[Any] = []
    estimator.train(train_input, steps=3)
    hooks = hb.as_hooks(recorder(keras, log), **options(estimator))
    predicted = [p["y"] for p in estimator.predict(predict_input, hooks=hooks)]
    assert [e[0] for e in log] == [
        "on_predict_begin",
        *["on_predict_batch_begin", "on_predict_batch_end"] * STEPS,
        # The batch that meets the end of the data begins and does not end.
        "on_predict_batch_begin",
        "on_predict_end",
    ]
    outputs = [e[2]["outputs"]["y"] for e in log if e[0] == "on_predict_batch_end"]
    np.testing.assert_array_equal(np.concatenate(outputs), predicted)


def test_train_and_evaluate_with_the_same_hooks_in_both(
    keras: Any, estimator: Any
) -> None:
    log: list[Any] = []
    estimator = estimators.Estimator(
        estimator._model_fn,
        config=estimator.config.replace(save_checkpoints_steps=STEPS),
    )
    hooks = hb.as_hooks(recorder(keras, log), **options(estimator))
    estimators.train_and_evaluate(
        estimator,
        estimators.TrainSpec(train_input, max_steps=3 * STEPS, hooks=hooks),
        estimators.EvalSpec(
            eval_input, steps=2, hooks=hooks, throttle_secs=0, start_delay_secs=0
        ),
    )
    counts = Counter(e[0] for e in log)
    assert counts["on_train_begin"] == counts["on_train_end"] == 1
    assert counts["on_train_batch_end"] == 3 * STEPS
    assert counts["on_epoch_end"] == 3
    assert counts["on_test_begin"] == counts["on_test_end"] == 3
    assert counts["on_test_batch_end"] == 6


def test_second_train_goes_on_at_its_epoch(keras: Any, estimator: Any) -> None:
    log: list[Any] = []
    hooks = hb.as_hooks(recorder(keras, log), epochs=4, **options(estimator))
    estimator.train(train_input, hooks=hooks, steps=2 * STEPS)
    estimator.train(train_input, hooks=hooks)
    begins = [e[1] for e in log if e[0] == "on_epoch_begin"]
    assert begins == [0, 1, 2, 3]
    assert estimator.get_variable_value("global_step") == 4 * STEPS


def test_learning_rate_of_an_estimator_is_set(keras: Any, estimator: Any) -> None:
    """After the first epoch the rate is 0: the weights stay."""
    weights: list[Any] = []

    class Keep(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            weights.append(self.model.get_weights()[0])

    scheduler = keras.callbacks.LearningRateScheduler(lambda epoch: 0.1 * (epoch == 0))
    estimator.train(
        train_input,
        hooks=hb.as_hooks([scheduler, Keep()], epochs=3, **options(estimator)),
    )
    assert np.any(weights[0])
    np.testing.assert_array_equal(weights[1], weights[0])
    np.testing.assert_array_equal(weights[2], weights[0])


def test_whole_model_of_a_model_fn(keras: Any, tmp_path: Path) -> None:
    estimator = estimators.Estimator(keras_model_fn, str(tmp_path / "model"))
    path = str(tmp_path / "model.keras")
    hooks = hb.as_hooks(
        keras.callbacks.ModelCheckpoint(path), epochs=1, **options(estimator)
    )
    estimator.train(train_input, hooks=hooks)
    keras2 = importlib.import_module(KERAS2)
    loaded = keras2.models.load_model(path, compile=False)
    np.testing.assert_array_equal(
        loaded.get_weights()[0], estimator.get_variable_value("dense/kernel")
    )
