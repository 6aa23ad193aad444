"""Hooks and callbacks together wherever an Estimator takes hooks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import estimator_scenarios as scenarios
import numpy as np
import pytest
from callback_recorder import callback_of, noting

import hookbridge as hb
from hookbridge import errors
from hookbridge.ground import compat
from hookbridge.testing import EventLog, RecordingHook

ONE_KERAS = True

PER_EPOCH = 3
_EVENTS = (
    "train_begin epoch_begin train_batch_end epoch_end train_end test_begin test_end "
    "predict_batch_end predict_end"
)
ONE_EPOCH = ["epoch_begin", *["train_batch_end"] * 3, "epoch_end"]
PREDICTION = [*["predict_batch_end"] * 3, "predict_end"]


def recorder(keras: Any, events: list[Any]) -> Any:
    """A callback of a Keras flavour that notes its events."""

    def note(self: Any, event: str, *args: Any) -> None:
        events.append((event.removeprefix("on_"), *args[:-1], dict(args[-1] or {})))

    return noting(keras, note, [f"on_{event}" for event in _EVENTS.split()])


def names(events: list[Any]) -> list[Any]:
    return [event[0] for event in events]


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
    assert names(events) == PREDICTION

    # The same hooks serve a second training, which begins with the next epoch.
    events.clear()
    estimator.train(scenarios.input_fn(), hooks=hooks, steps=PER_EPOCH)
    assert events[1] == ("epoch_begin", 2, {})
    assert names(events) == ["train_begin", *ONE_EPOCH, "train_end"]


def test_estimator_spec_hooks_take_callbacks(keras: Any, tmp_path: Path) -> None:
    events: list[Any] = []

    def model_fn(features: Any, labels: Any, mode: str, params: Any) -> Any:
        spec = scenarios.custom_model_fn(features, labels, mode, params)
        hooks = hb.as_hooks(recorder(keras, events), steps_per_epoch=PER_EPOCH)
        word = {"train": "training", "eval": "evaluation", "infer": "prediction"}[mode]
        return spec._replace(**{f"{word}_hooks": hooks})

    estimator = hb.estimator.Estimator(
        model_fn, str(tmp_path), params={"learning_rate": 0.1}
    )
    estimator.train(scenarios.input_fn(), steps=PER_EPOCH)
    estimator.evaluate(scenarios.input_fn(repeat=False))
    list(estimator.predict(scenarios.input_fn(repeat=False)))
    trained = ["train_begin", *ONE_EPOCH, "train_end"]
    assert names(events) == [*trained, "test_begin", "test_end", *PREDICTION]


def test_train_and_eval_spec_take_callbacks(keras: Any, tmp_path: Path) -> None:
    """And one callback counts through several trainings."""
    logs: list[list[Any]] = [[], []]
    guests = [recorder(keras, log) for log in logs]
    for number in (1, 2):
        training, evaluating = (
            hb.as_hooks(guest, steps_per_epoch=PER_EPOCH) for guest in guests
        )
        steps = 2 * PER_EPOCH * number
        hb.estimator.train_and_evaluate(
            scenarios.custom(tmp_path, save_checkpoints_steps=2 * PER_EPOCH),
            hb.estimator.TrainSpec(scenarios.input_fn(), steps, hooks=training),
            scenarios.evaluation(hooks=evaluating),
        )
    once = ["train_begin", *ONE_EPOCH, *ONE_EPOCH, "train_end"]
    assert names(logs[0]) == [*once, *once]
    assert names(logs[1]) == ["test_begin", "test_end"] * 2


# --- model_to_estimator ---------------------------------------------------------
def keras_model(keras: Any) -> Any:
    keras.backend.clear_session()
    hidden = keras.layers.Dense(4, "tanh", input_shape=(3,), name="hidden")
    model = keras.Sequential([hidden, keras.layers.Dense(1, name="out")])
    model.compile(keras.optimizers.legacy.SGD(0.05), "mse", metrics=["mae"])
    return model


def input_fn(*, repeat: bool = True) -> Any:
    def make() -> Any:
        dataset = scenarios.input_fn(repeat=repeat)()
        return dataset.map(lambda x, y: ({"hidden_input": x["x"]}, y))

    return make


def test_model_keeps_its_callbacks_and_hooks(keras2: Any, tmp_path: Path) -> None:
    """And trains as `Model.fit` does."""

    def plateau() -> Any:
        return keras2.callbacks.ReduceLROnPlateau("mae", patience=1, min_delta=1e3)

    twin, model = keras_model(keras2), keras_model(keras2)
    model.set_weights(twin.get_weights())
    features, labels = scenarios.data()
    options = {"batch_size": 8, "epochs": 3, "shuffle": False, "verbose": 0}
    fitted = twin.fit(features["x"], labels, callbacks=[plateau()], **options).history
    events: list[Any] = []
    log = EventLog()
    history = keras2.callbacks.History()
    seen = []

    def look(self: Any, epoch: int, logs: Any) -> None:
        seen.append([layer.name for layer in self.model.layers])

    looks = callback_of(keras2, on_epoch_end=look)
    estimator = hb.estimator.model_to_estimator(
        model,
        model_dir=str(tmp_path),
        callbacks=[recorder(keras2, events), plateau(), history, looks],
        hooks=RecordingHook(log, "hook"),
        steps_per_epoch=PER_EPOCH,
        epochs=3,
    )
    assert isinstance(estimator, hb.estimator.Estimator)
    estimator.train(input_fn())
    assert names(events) == ["train_begin", *ONE_EPOCH * 3, "train_end"]
    assert log.counts("hook")["after_run"] == 3 * PER_EPOCH
    for key in ("loss", "mae"):
        np.testing.assert_allclose(history.history[key], fitted[key], rtol=1e-4)
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
    assert names(events) == PREDICTION


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
        scenarios.evaluation(data=input_fn(repeat=False)),
    )
    assert result["global_step"] == 2 * PER_EPOCH
    assert names(events) == ["train_begin", *ONE_EPOCH * 2, "train_end"]
    # A later evaluation calls the callbacks of the model again.
    estimator.evaluate(input_fn(repeat=False))
    assert names(events)[-2:] == ["test_begin", "test_end"]


def test_model_to_estimator_refuses_before_training(
    keras: Any, keras2: Any, tmp_path: Path
) -> None:
    model, make = keras_model(keras2), hb.estimator.model_to_estimator
    with pytest.raises(errors.EpochsUndefinedError):
        make(model, callbacks=keras.callbacks.EarlyStopping("loss"))
    with pytest.raises(errors.NotAGuestError):
        make(model, callbacks=[print])
    # Without guests it is Keras's own.
    plain = make(model, model_dir=str(tmp_path))
    assert plain._model_fn.__qualname__.startswith("_create_keras_model_fn")
    if compat.is_keras3(keras):
        model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
        model.compile("sgd", "mse")
        with pytest.raises(errors.RefusedError, match="tf_keras"):
            make(model)


@pytest.mark.slow
def test_state_survives_a_restart(keras2: Any, tmp_path: Path) -> None:
    def train(**until: int) -> Any:
        stopping = keras2.callbacks.EarlyStopping("loss", patience=3, min_delta=1e6)
        options = {"steps_per_epoch": PER_EPOCH, "callbacks": stopping}
        estimator = hb.estimator.model_to_estimator(
            keras_model(keras2), model_dir=str(tmp_path), **options
        )
        estimator.train(input_fn(), **until)
        return estimator

    train(steps=2 * PER_EPOCH)
    assert (tmp_path / f"model.ckpt-{2 * PER_EPOCH}.hookbridge.json").exists()
    estimator = train(steps=100)
    # The first epoch is the best; the patience of three epochs spans the restart.
    assert estimator.evaluate(input_fn(repeat=False))["global_step"] == 4 * PER_EPOCH
