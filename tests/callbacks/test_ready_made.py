"""The ready-made callbacks in `fit` and in session loops."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from ramps import fit_ramp, ramp_model, session_ramp

import hookbridge as hb
from hookbridge.adapters.guests.guest_record import record_of

v1 = tf.compat.v1
RATES = [0.5, 0.25, 0.25, 0.125, 1.0, 0.0625]


def test_the_rate_of_each_update(keras: Any) -> None:
    seen: list[float] = []

    class Weights(keras.callbacks.Callback):  # type: ignore[misc,name-defined]
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            seen.append(float(self.model.get_weights()[0][0, 0]))

    scheduler = hb.callbacks.LearningRateScheduler(lambda step: RATES[step])
    fit_ramp(keras, [scheduler, Weights()])
    in_session = session_ramp([scheduler])
    for weights in (seen, in_session):
        np.testing.assert_allclose(np.diff([0.0, *weights]), RATES, rtol=1e-6)


def test_the_step_under_a_strategy(keras: Any) -> None:
    steps: list[int] = []

    def rate(step: int) -> float:
        steps.append(step)
        return 0.5

    # Not collectives: those of two models in one process would share their keys.
    reduction = tf.distribute.ReductionToOneDevice()
    with tf.distribute.MirroredStrategy(["cpu:0", "cpu:1"], reduction).scope():
        fit_ramp(keras, [hb.callbacks.LearningRateScheduler(rate)])
    assert steps == list(range(len(RATES)))


def test_the_step_of_a_call_that_makes_several(keras: Any) -> None:
    steps: list[int] = []

    def rate(step: int) -> float:
        steps.append(step)
        return 0.5

    model = keras.Sequential([keras.Input([1]), keras.layers.Dense(1)])
    model.compile("sgd", "mse", steps_per_execution=3)
    guests = hb.as_callbacks([hb.callbacks.LearningRateScheduler(rate)])
    ones = np.ones([6, 1], "float32")
    model.fit(ones, ones, batch_size=1, epochs=2, verbose=0, callbacks=guests)
    assert steps == [0, 3, 6, 9]


def test_the_step_where_gradients_are_accumulated(keras: Any) -> None:
    """Keras 3 counts an update for two steps there; the step is that of hooks."""
    is_keras3 = "gradient_accumulation_steps" in keras.optimizers.SGD().get_config()
    options = {"gradient_accumulation_steps": 2} if is_keras3 else {}
    steps: list[int] = []
    ends: list[int] = []

    class Step(hb.callbacks.EarlyStopper):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            ends.append(self.global_step())

    model = ramp_model(keras)
    model.compile(keras.optimizers.SGD(9.0, **options), "mse")

    def rate(step: int) -> float:
        steps.append(step)
        return 1.0

    scheduler = hb.callbacks.LearningRateScheduler(rate)
    guests = hb.as_callbacks([scheduler, Step(lambda evaluations: False)])
    ones = np.ones([6, 1], "float32")
    model.fit(ones, ones, batch_size=2, epochs=2, verbose=0, callbacks=guests)
    assert steps == list(range(6)) and ends == list(range(1, 7))


def stop_after(number: int, seen: list[Any]) -> Callable[[list[Any]], bool]:
    def stop(evaluations: list[Any]) -> bool:
        seen.append([dict(each) for each in evaluations])
        return len(evaluations) == number

    return stop


def summaries(folder: Path) -> list[tuple[int, str, float]]:
    found = []
    for path in sorted(folder.glob("events*")):
        for event in v1.train.summary_iterator(str(path)):
            for value in event.summary.value:
                number = float(tf.make_ndarray(value.tensor))
                found.append((event.step, value.tag, number))
    return found


def test_early_stopper_and_summary_writer_in_fit(keras: Any, tmp_path: Path) -> None:
    seen: list[Any] = []
    stopper = hb.callbacks.EarlyStopper(stop_after(2, seen))
    writer = hb.callbacks.SummaryWriter(
        lambda metrics: {"twice": 2 * metrics["loss"]}, str(tmp_path)
    )
    ones = np.ones([2, 1], "float32")
    model = fit_ramp(keras, [writer, stopper], epochs=9, validation_data=(ones, ones))
    assert int(model.optimizer.iterations) == 6  # 2 epochs of 3 steps
    assert [len(each) for each in seen] == [1, 2]
    assert seen[1] == stopper.evaluations
    assert set(stopper.evaluations[0]) == {"loss"}
    losses = [each["loss"] for each in stopper.evaluations]
    found = summaries(tmp_path)
    assert [each[:2] for each in found] == [(3, "twice"), (6, "twice")]
    assert [each[2] for each in found] == pytest.approx([2 * each for each in losses])


def test_early_stopper_and_summary_writer_in_a_session(tmp_path: Path) -> None:
    stopper = hb.callbacks.EarlyStopper(stop_after(2, []))
    writer = hb.callbacks.SummaryWriter(lambda metrics: {"twice": 2 * metrics["score"]})
    values = iter([{"score": 0.5}, {"score": 0.75}, {"score": 1.0}])
    steps = session_ramp(
        [writer, stopper],
        steps=9,
        validation=lambda: next(values),
        params={"checkpoint_path": str(tmp_path)},
    )
    assert len(steps) <= 6
    assert stopper.evaluations == [{"score": 0.5}, {"score": 0.75}]
    expected = [(3, "twice", 1.0), (6, "twice", 1.5)]
    assert summaries(tmp_path / "evaluation") == expected


def test_predictions_of_fit(keras: Any) -> None:
    got: list[Any] = []
    processor = hb.callbacks.PredictionOutputsProcessor(got.append)
    model = ramp_model(keras)
    x = np.arange(5, dtype="float32")[:, None]
    guests = hb.as_callbacks([processor])
    found = model.predict(x, batch_size=2, verbose=0, callbacks=guests)
    np.testing.assert_allclose(np.concatenate(got), found)
    assert [len(each) for each in got] == [2, 2, 1]


def test_where_each_of_them_runs(subtests: pytest.Subtests, tmp_path: Path) -> None:
    callbacks = hb.callbacks
    roles = {
        "worker": [
            callbacks.PredictionOutputsProcessor(print),
            callbacks.LearningRateScheduler(float),
        ],
        "chief": [
            callbacks.SummaryWriter(dict),
            callbacks.EarlyStopper(bool),
            callbacks.SavedModelExporter(str(tmp_path)),
            callbacks.ModelUploader(str(tmp_path)),
        ],
    }
    for role, members in roles.items():
        assert {record_of(each).role for each in members} == {role}
    for host in ("session", "fit", "parameter_server"):
        with subtests.test(str(host)):
            report = hb.explain([*roles["worker"], *roles["chief"]], host=host)
            refused = [g.name for g in report.guests if g.verdict == "refused"]
            # A session has no Keras model to export, unless `model=` gives it one.
            assert refused == (["SavedModelExporter"] if host == "session" else [])
