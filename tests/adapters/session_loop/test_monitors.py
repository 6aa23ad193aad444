"""A monitor of a metric that the loop does not produce: an error, or a warning."""

from __future__ import annotations

from typing import Any

import pytest
import tensorflow as tf
from callback_loops import STEPS, begin, build, feeds, session_loop

import hookbridge as hb
from hookbridge import errors

ONE_KERAS = True


def test_unknown_monitor_lists_those_that_exist(keras: Any) -> None:
    with pytest.raises(
        errors.UnknownMetricError,
        match=r'`EarlyStopping` monitors "acuracy".*It produces: loss, accuracy '
        r'\(nearest: "accuracy"\).*logs=',
    ):
        begin(
            keras.callbacks.EarlyStopping("acuracy", mode="max"),
            logs={"accuracy": "mae:0"},
        )


def test_val_monitor_without_validation(keras: Any) -> None:
    with pytest.raises(
        errors.UnknownMetricError, match=r'monitors "val_loss".*validation='
    ):
        begin(keras.callbacks.ReduceLROnPlateau())


def test_val_monitor_that_the_validation_does_not_make(keras: Any) -> None:
    class Validation:
        metric_names = ("loss",)

        def run(self, session: Any, report: Any) -> dict[str, float]:
            return {"loss": 1.0}

    with pytest.raises(errors.UnknownMetricError, match="It produces: loss, val_loss"):
        begin(
            keras.callbacks.EarlyStopping("val_acc", mode="max"),
            validation=Validation(),
        )


def test_val_monitor_is_checked_after_the_first_validation_of_a_function(
    keras: Any,
) -> None:
    with tf.Graph().as_default():
        net = build()
        hooks = hb.as_hooks(
            keras.callbacks.EarlyStopping("val_acc", mode="max"),
            steps_per_epoch=1,
            validation=lambda: {"loss": 1.0},
        )
        with (
            pytest.raises(errors.UnknownMetricError, match="val_loss"),
            tf.compat.v1.train.MonitoredTrainingSession(hooks=hooks) as session,
        ):
            session.run(net.train_op, feeds(net, 0))


def test_missing_metric_with_a_warning(
    keras: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """As in Keras, training goes on to its end."""
    stop = keras.callbacks.EarlyStopping("acuracy", mode="max")
    with pytest.raises(errors.UnknownMetricError, match='missing_metric="warn"'):
        session_loop([stop], epochs=2)
    assert session_loop([stop], epochs=2, missing_metric="warn").steps == 2 * STEPS
    assert 'monitors "acuracy", which this loop does not produce' in caplog.text
    late = keras.callbacks.EarlyStopping("val_acc", mode="max")
    with tf.Graph().as_default():
        net = build()
        hooks = hb.as_hooks(
            late,
            steps_per_epoch=1,
            epochs=3,
            validation=lambda: {"loss": 1.0},
            missing_metric="warn",
        )
        with tf.compat.v1.train.MonitoredTrainingSession(hooks=hooks) as session:
            while not session.should_stop():
                session.run(net.train_op, feeds(net, 0))
    assert 'monitors "val_acc"' in caplog.text
    unknown: Any = "ignore"
    with pytest.raises(errors.InvalidArgumentError, match="'refuse'"):
        hb.as_hooks(stop, steps_per_epoch=1, missing_metric=unknown)


def test_monitor_of_what_an_earlier_callback_adds(keras: Any) -> None:
    class Adds(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            logs["extra"] = 1.0

    stop = keras.callbacks.EarlyStopping("extra", mode="min", patience=1)
    run = session_loop([Adds(), stop], epochs=9)
    assert run.steps == 2 * STEPS
    with pytest.raises(errors.UnknownMetricError):
        begin([stop, Adds()])
