"""Hooks and callbacks together wherever an Estimator takes hooks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import estimator_scenarios as scenarios
import numpy as np
import pytest
import tensorflow as tf
from callback_loops import counting

import hookbridge as hb
from hookbridge import compat, errors
from hookbridge.testing import EventLog, RecordingHook

v1 = tf.compat.v1
PER_EPOCH = 3


def recorder(keras: Any, events: list[Any]) -> Any:
    """A callback of a Keras flavour that notes its events and their main number."""

    class Recorder(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        def on_train_begin(self, logs: Any = None) -> None:
            events.append(("train_begin",))

        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            events.append(("epoch_begin", epoch))

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            events.append(("batch_end", batch))

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            events.append(("epoch_end", epoch, dict(logs)))

        def on_train_end(self, logs: Any = None) -> None:
            events.append(("train_end",))

        def on_test_begin(self, logs: Any = None) -> None:
            events.append(("test_begin",))

        def on_test_end(self, logs: Any = None) -> None:
            events.append(("test_end", dict(logs)))

        def on_predict_batch_end(self, batch: int, logs: Any = None) -> None:
            events.append(("predict_batch_end", batch))

        def on_predict_end(self, logs: Any = None) -> None:
            events.append(("predict_end",))

    return Recorder()


def names(events: list[Any]) -> list[Any]:
    return [event[0] for event in events]


ONE_EPOCH = ["epoch_begin", "batch_end", "batch_end", "batch_end", "epoch_end"]


def test_one_callback_counts_through_five_trainings(keras: Any, tmp_path: Path) -> None:
    counts = counting(keras)
    estimator = scenarios.custom(tmp_path)
    for _ in range(5):
        hooks = hb.as_hooks([counts], steps_per_epoch=PER_EPOCH)
        estimator.train(scenarios.input_fn(), hooks=hooks, steps=PER_EPOCH)
    assert (counts.begins, counts.batches, counts.ends) == (5, 5 * PER_EPOCH, 5)


def test_train_evaluate_and_predict_take_both_kinds(keras: Any, tmp_path: Path) -> None:
    events: list[Any] = []
    log = EventLog()
    hooks = hb.as_hooks(
        [recorder(keras, events), RecordingHook(log, "hook")], steps_per_epoch=PER_EPOCH
    )
    estimator = scenarios.custom(tmp_path)
    estimator.train(scenarios.input_fn(), hooks=hooks, steps=2 * PER_EPOCH)
    assert names(events) == ["train_begin", *ONE_EPOCH, *ONE_EPOCH, "train_end"]
    batch_losses: Any = [v for _, t, v in scenarios.events(tmp_path) if t == "loss_1"]
    means = [e[2]["loss"] for e in events if e[0] == "epoch_end"]
    np.testing.assert_allclose(
        means,
        [np.mean(batch_losses[:PER_EPOCH]), np.mean(batch_losses[PER_EPOCH:])],
        rtol=1e-5,
    )
    assert log.counts("hook")["after_run"] == 2 * PER_EPOCH

    events.clear()
    result = estimator.evaluate(scenarios.input_fn(repeat=False), hooks=hooks)
    assert names(events) == ["test_begin", "test_end"]
    assert events[-1][1]["loss"] == pytest.approx(float(result["loss"]), rel=1e-5)

    events.clear()
    rows = list(estimator.predict(scenarios.input_fn(repeat=False), hooks=hooks))
    assert len(rows) == 24
    assert names(events) == [*["predict_batch_end"] * 3, "predict_end"]

    # The same hooks serve a second training, which begins with the next epoch.
    events.clear()
    estimator.train(scenarios.input_fn(), hooks=hooks, steps=PER_EPOCH)
    assert events[1] == ("epoch_begin", 2)
    assert names(events) == ["train_begin", *ONE_EPOCH, "train_end"]


def test_estimator_spec_hooks_take_callbacks(keras: Any, tmp_path: Path) -> None:
    events: list[Any] = []

    def model_fn(features: Any, labels: Any, mode: str, params: Any) -> Any:
        spec = scenarios.custom_model_fn(features, labels, mode, params)
        hooks = hb.as_hooks(recorder(keras, events), steps_per_epoch=PER_EPOCH)
        if mode == hb.estimator.ModeKeys.TRAIN:
            return spec._replace(training_hooks=hooks)
        if mode == hb.estimator.ModeKeys.EVAL:
            return spec._replace(evaluation_hooks=hooks)
        return spec._replace(prediction_hooks=hooks)

    estimator = hb.estimator.Estimator(
        model_fn, str(tmp_path), params={"learning_rate": 0.1}
    )
    estimator.train(scenarios.input_fn(), steps=PER_EPOCH)
    estimator.evaluate(scenarios.input_fn(repeat=False))
    list(estimator.predict(scenarios.input_fn(repeat=False)))
    assert names(events) == [
        *["train_begin", *ONE_EPOCH, "train_end"],
        *["test_begin", "test_end"],
        *[*["predict_batch_end"] * 3, "predict_end"],
    ]


def test_train_and_eval_spec_take_callbacks(keras: Any, tmp_path: Path) -> None:
    training: list[Any] = []
    evaluation: list[Any] = []
    hb.estimator.train_and_evaluate(
        scenarios.custom(tmp_path, save_checkpoints_steps=2 * PER_EPOCH),
        hb.estimator.TrainSpec(
            scenarios.input_fn(),
            max_steps=2 * PER_EPOCH,
            hooks=hb.as_hooks(recorder(keras, training), steps_per_epoch=PER_EPOCH),
        ),
        hb.estimator.EvalSpec(
            scenarios.input_fn(repeat=False),
            hooks=hb.as_hooks(recorder(keras, evaluation), steps_per_epoch=PER_EPOCH),
            start_delay_secs=0,
            throttle_secs=0,
        ),
    )
    assert names(training) == ["train_begin", *ONE_EPOCH, *ONE_EPOCH, "train_end"]
    assert names(evaluation) == ["test_begin", "test_end"]


def test_callbacks_of_keras_steer_an_estimator(keras: Any, tmp_path: Path) -> None:
    """EarlyStopping on a validation loss stops `train`."""
    estimator = scenarios.custom(tmp_path)
    spec = hb.estimator.EvalSpec(scenarios.input_fn(repeat=False))
    history = keras.callbacks.History()
    hooks = hb.as_hooks(
        [keras.callbacks.EarlyStopping("val_loss", min_delta=1e3, patience=1), history],
        steps_per_epoch=PER_EPOCH,
        validation=(estimator, spec),
    )
    estimator.train(scenarios.input_fn(), hooks=hooks, steps=100)
    # The first epoch sets the best value, and the next one does not improve it by 1000.
    assert estimator.get_variable_value("global_step") == 2 * PER_EPOCH
    assert set(history.history) >= {"loss", "val_loss", "val_mae"}
    final = estimator.evaluate(scenarios.input_fn(repeat=False))
    assert history.history["val_loss"][-1] == pytest.approx(
        float(final["loss"]), rel=1e-5
    )


class LossOfEveryRun(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
    """Keeps the loss that the Estimator trains on."""

    def begin(self) -> None:
        self.losses: list[float] = []
        graph_keys = tf.compat.v1.GraphKeys
        self.loss = tf.compat.v1.get_collection(graph_keys.LOSSES)[-1]

    def before_run(self, run_context: Any) -> Any:
        return tf.compat.v1.train.SessionRunArgs(self.loss)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self.losses.append(float(run_values.results))


@pytest.mark.parametrize("name", ["linear", "dnn_v1"])
def test_canned_estimators_take_callbacks(
    name: str, keras: Any, tmp_path: Path
) -> None:
    make, classes = scenarios.SCENARIOS[name]
    history = keras.callbacks.History()
    estimator = make(tmp_path)
    # The losses come from a hook, which sees every run. The summaries of a canned v1
    # Estimator may miss one: its global step moves while SummarySaverHook reads it.
    native = LossOfEveryRun()
    hooks = hb.as_hooks([native, history], steps_per_epoch=PER_EPOCH)
    estimator.train(scenarios.input_fn(classes), hooks=hooks, steps=2 * PER_EPOCH)
    losses = native.losses
    assert len(losses) == 2 * PER_EPOCH
    means = [np.mean(losses[:PER_EPOCH]), np.mean(losses[PER_EPOCH:])]
    np.testing.assert_allclose(history.history["loss"], means, rtol=1e-5)


# --- model_to_estimator ---------------------------------------------------------


def keras_model(keras: Any) -> Any:
    model = keras.Sequential(
        [
            keras.layers.Dense(4, "tanh", input_shape=(3,), name="hidden"),
            keras.layers.Dense(1, name="out"),
        ]
    )
    model.compile(keras.optimizers.legacy.SGD(0.05), "mse", metrics=["mae"])
    return model


def input_fn(*, repeat: bool = True) -> Any:
    def make() -> Any:
        features, labels = scenarios.data()
        dataset = tf.data.Dataset.from_tensor_slices(
            ({"hidden_input": features["x"]}, labels)
        )
        return (dataset.repeat() if repeat else dataset).batch(scenarios.BATCH)

    return make


@pytest.mark.slow
def test_model_keeps_its_callbacks_and_hooks(keras2: Any, tmp_path: Path) -> None:
    events: list[Any] = []
    log = EventLog()
    history = keras2.callbacks.History()
    plateau = keras2.callbacks.ReduceLROnPlateau("mae", patience=1, min_delta=1e3)
    seen = []

    class Looks(keras2.callbacks.Callback):  # type: ignore[misc, name-defined]
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            seen.append([layer.name for layer in self.model.layers])

    estimator = hb.estimator.model_to_estimator(
        keras_model(keras2),
        model_dir=str(tmp_path),
        callbacks=[recorder(keras2, events), plateau, history, Looks()],
        hooks=RecordingHook(log, "hook"),
        steps_per_epoch=PER_EPOCH,
        epochs=3,
    )
    assert isinstance(estimator, hb.estimator.Estimator)
    estimator.train(input_fn())
    assert names(events) == ["train_begin", *ONE_EPOCH * 3, "train_end"]
    assert log.counts("hook")["after_run"] == 3 * PER_EPOCH
    assert set(history.history) >= {"loss", "mae"}
    assert seen == [["hidden", "out"]] * 3
    rates = history.history.get("lr") or history.history["learning_rate"]
    np.testing.assert_allclose(rates, [0.05, 0.05, 0.005], rtol=1e-4)

    events.clear()
    result = estimator.evaluate(input_fn(repeat=False))
    assert result["global_step"] == 3 * PER_EPOCH
    assert names(events) == ["test_begin", "test_end"]
    assert events[-1][1]["mae"] == pytest.approx(float(result["mae"]), rel=1e-5)
    events.clear()
    list(estimator.predict(input_fn(repeat=False)))
    assert names(events) == [*["predict_batch_end"] * 3, "predict_end"]


def test_model_to_estimator_equals_fit(keras2: Any, tmp_path: Path) -> None:
    """The losses of `Model.fit` and of the Estimator of the same model agree."""
    model = keras_model(keras2)
    start = model.get_weights()
    features, labels = scenarios.data()
    fitted = model.fit(
        features["x"], labels, batch_size=8, epochs=3, shuffle=False, verbose=0
    ).history
    model.set_weights(start)
    history = keras2.callbacks.History()
    estimator = hb.estimator.model_to_estimator(
        model,
        model_dir=str(tmp_path),
        callbacks=history,
        steps_per_epoch=PER_EPOCH,
        epochs=3,
    )
    estimator.train(input_fn())
    for key in ("loss", "mae"):
        np.testing.assert_allclose(history.history[key], fitted[key], rtol=1e-4)


@pytest.mark.slow
def test_evaluation_inside_training_leaves_the_model_s_callbacks_alone(
    keras2: Any, tmp_path: Path
) -> None:
    events: list[Any] = []
    estimator = hb.estimator.model_to_estimator(
        keras_model(keras2),
        config=hb.estimator.RunConfig(str(tmp_path), save_checkpoints_steps=PER_EPOCH),
        callbacks=recorder(keras2, events),
        steps_per_epoch=PER_EPOCH,
    )
    result, _ = hb.estimator.train_and_evaluate(
        estimator,
        hb.estimator.TrainSpec(input_fn(), max_steps=2 * PER_EPOCH),
        hb.estimator.EvalSpec(
            input_fn(repeat=False), start_delay_secs=0, throttle_secs=0
        ),
    )
    assert result["global_step"] == 2 * PER_EPOCH
    assert names(events) == ["train_begin", *ONE_EPOCH * 2, "train_end"]
    # A later evaluation calls the callbacks of the model again.
    estimator.evaluate(input_fn(repeat=False))
    assert names(events)[-2:] == ["test_begin", "test_end"]


def test_without_guests_it_is_keras_s_own(keras2: Any, tmp_path: Path) -> None:
    estimator = hb.estimator.model_to_estimator(
        keras_model(keras2), model_dir=str(tmp_path)
    )
    assert estimator._model_fn.__qualname__.startswith("_create_keras_model_fn")


def test_model_to_estimator_refuses_before_training(
    keras: Any, keras2: Any, tmp_path: Path
) -> None:
    model = keras_model(keras2)
    with pytest.raises(errors.EpochsUndefinedError):
        hb.estimator.model_to_estimator(
            model, callbacks=keras.callbacks.EarlyStopping("loss")
        )
    with pytest.raises(errors.NotAGuestError):
        hb.estimator.model_to_estimator(model, callbacks=[print])


def test_keras_3_models_are_refused_with_the_way_out(keras: Any) -> None:
    if not compat.is_keras3(keras):
        assert keras_model(keras) is not None  # a Keras 2 model is accepted
        return
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    with pytest.raises(errors.RefusedError, match="tf_keras"):
        hb.estimator.model_to_estimator(model)
