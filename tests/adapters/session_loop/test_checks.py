"""What cannot be carried is refused before the first step, by name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from callback_loops import (
    STEPS,
    X,
    Y,
    begin,
    build,
    feeds,
    session_loop,
    until_stop,
)
from callback_recorder import callback_of
from estimator_models import estimators

import hookbridge as hb
from hookbridge import errors

ONE_KERAS = True

v1: Any = tf.compat.v1
INVALID, LIVE = errors.InvalidArgumentError, errors.LiveModelError


class Validation:
    """Makes a loss only."""

    metric_names = ("loss",)

    def run(self, session: Any, report: Any) -> dict[str, float]:
        return {"loss": 1.0}


def stopping(keras: Any, monitor: str) -> Any:
    return keras.callbacks.EarlyStopping(monitor, mode="max")


# Error, its text, and how a guest, with options, meets it in `begin` or before.
REFUSED: list[tuple[type[Exception], str, Callable[[Any], Any]]] = [
    (
        errors.EpochsUndefinedError,
        r"`CSVLogger` works in epochs.*steps_per_epoch=",
        lambda k: hb.as_hooks(k.callbacks.CSVLogger("x.csv")),
    ),
    (
        errors.EpochsUndefinedError,
        "without `steps_per_epoch`",
        lambda k: hb.as_hooks(k.callbacks.Callback(), epochs=3),
    ),
    # It is for evaluations too, so that only a training can refuse it.
    (
        errors.EpochsUndefinedError,
        "`TensorBoard`",
        lambda k: begin(k.callbacks.TensorBoard("logs"), steps_per_epoch=None),
    ),
    (
        errors.RefusedError,
        r"`ModelCheckpoint`.*`save_weights_only=True`",
        lambda k: begin(k.callbacks.ModelCheckpoint("m.keras")),
    ),
    (
        errors.UnknownMetricError,
        r'`EarlyStopping` monitors "acuracy".*It produces: loss, accuracy '
        r'\(nearest: "accuracy"\).*logs=',
        lambda k: begin(stopping(k, "acuracy"), logs={"accuracy": "mae:0"}),
    ),
    (
        errors.UnknownMetricError,
        r'monitors "val_loss".*validation=',
        lambda k: begin(k.callbacks.ReduceLROnPlateau()),
    ),
    (
        errors.UnknownMetricError,
        "It produces: loss, val_loss",
        lambda k: begin(stopping(k, "val_acc"), validation=Validation()),
    ),
]


def test_refused(subtests: pytest.Subtests, keras: Any) -> None:
    for error, text, run in REFUSED:
        with subtests.test(str(error)), pytest.raises(error, match=text):
            run(keras)
    # A callback of batches needs no epochs.
    begin(keras.callbacks.TerminateOnNaN(), steps_per_epoch=None)


def test_models_that_no_graph_has(subtests: pytest.Subtests, keras3: Any) -> None:
    model = keras3.Sequential([keras3.layers.Input((2,)), keras3.layers.Dense(1)])
    for given in (model, lambda: model):
        with subtests.test(str(given)):
            with pytest.raises(errors.RefusedError, match=r"Keras 3 model.*`tf_keras`"):
                begin(keras3.callbacks.History(), model=given)


def test_unwritable(subtests: pytest.Subtests, keras: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    c = keras.callbacks
    for place in ("/proc/no/such", tmp_path / "file" / "below"):
        with subtests.test(str(place)):
            for callback in (
                c.ModelCheckpoint(
                    f"{place}/w{{epoch}}.weights.h5", save_weights_only=True
                ),
                c.TensorBoard(f"{place}/logs"),
                c.CSVLogger(f"{place}/log.csv"),
                c.BackupAndRestore(f"{place}/backup"),
            ):
                with pytest.raises(
                    errors.UnwritableError, match=type(callback).__name__
                ):
                    hb.as_hooks(callback, steps_per_epoch=2)
    hb.as_hooks(c.TensorBoard(str(tmp_path / "a" / "b")), steps_per_epoch=2)
    assert len(list(tmp_path.iterdir())) == 1  # a check leaves nothing behind


def unknown_update() -> None:
    variable = v1.get_variable("v", [])
    step = v1.train.get_or_create_global_step()
    tf.group(variable.assign_sub(0.1 * variable), step.assign_add(1), name="train")


def constant_that_cannot_be_fed() -> None:
    build()
    rate = v1.get_default_graph().get_tensor_by_name("GradientDescent/learning_rate:0")
    tf.get_static_value(rate)  # forbids feeding it


def two_optimizers() -> None:
    v1.train.AdamOptimizer(0.5).minimize(build().loss)


def only_the_loop_knows() -> None:
    build(v1.placeholder(tf.float32, [], name="rate"))


def test_learning_rate_that_cannot_be_set(
    subtests: pytest.Subtests, keras: Any
) -> None:
    scheduler = keras.callbacks.LearningRateScheduler(lambda epoch: 0.1)
    for graph, text in (
        (unknown_update, r"learning_rate=<tensor"),
        (constant_that_cannot_be_fed, "placeholder_with_default"),
        (only_the_loop_knows, "placeholder_with_default"),
        (two_optimizers, "GradientDescent/learning_rate"),
    ):
        with subtests.test(str(graph)), tf.Graph().as_default():
            graph()
            (hook,) = hb.as_hooks(scheduler, steps_per_epoch=2)
            with pytest.raises(errors.RefusedError, match=text):
                hook.begin()
            if graph is two_optimizers:
                named: dict[str, Any] = {"learning_rate": "Adam/learning_rate"}
                hb.as_hooks(scheduler, steps_per_epoch=2, **named)[0].begin()


def test_model_says_what_it_offers(keras: Any) -> None:
    def ask(self: Any, logs: Any = None) -> None:
        model, optimizer = self.model, self.model.optimizer
        for name in ("loss_tracker", "compile", "save", "predict"):
            with pytest.raises(LIVE, match=r"(?s)(?=.*hookbridge)(?=.*model=)"):
                getattr(model, name)("path")
        with pytest.raises(LIVE) as refused:
            model.loss_tracker  # noqa: B018
        offered = str(refused.value).partition("It offers ")[2].partition(". With")[0]
        # Keras 3 has the first ones once a model is compiled and trained.
        later = {"history", "optimizer", "stop_training", "reset_states"}
        assert not {*offered.split(", ")} - {*dir(keras.Model()), *later}
        weights, other = [np.zeros((3, 1)), np.zeros(1)], keras.optimizers.SGD(0.1)
        layer = model.layers[0]
        assert layer.count_params() == 3 and layer.non_trainable_weights == []
        assert not hasattr(model, "inner_model")
        for match, error, call in (
            ("hookbridge", AttributeError, lambda: optimizer.momentum),
            ("validation=", AttributeError, model.evaluate),
            ("expected 2: dense", INVALID, lambda: model.set_weights(weights[:1])),
            (r"expected \(2, 1\)", INVALID, lambda: model.set_weights(weights)),
            ("model=<", LIVE, lambda: layer.kernel),
            ("optimizer", LIVE, lambda: setattr(model, "optimizer", other)),
            (r"get_global_step\(\)", LIVE, lambda: optimizer.iterations.assign(0)),
        ):
            with pytest.raises(error, match=match):
                call()
        for name in ("momentum", "beta_1", "weight_decay", "iterations"):
            with pytest.raises(LIVE, match=f"{name}(.|\n)*hookbridge"):
                setattr(optimizer, name, 0.5)
        model.mine = 3
        assert model.mine == 3

    def check(self: Any, epoch: int, logs: Any) -> None:
        asked.append(int(self.model.optimizer.iterations))

    asked: list[int] = []
    guest = callback_of(keras, on_train_begin=ask, on_epoch_end=check)
    session_loop([guest], validate=False, epochs=1)
    assert asked == [STEPS]


def test_missing_metric(keras: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Of a function that validates, it is known from a call before the first step."""

    def of_function(**options: Any) -> None:
        with tf.Graph().as_default():
            net = build()
            hooks = hb.as_hooks(
                stopping(keras, "val_acc"),
                steps_per_epoch=1,
                epochs=3,
                validation=lambda: {"loss": 1.0},
                **options,
            )
            until_stop(hooks, net.train_op, lambda step: feeds(net, step))

    with pytest.raises(errors.UnknownMetricError, match="val_loss"):
        of_function()
    of_function(missing_metric="warn")
    assert 'monitors "val_acc"' in caplog.text
    stop = stopping(keras, "acuracy")
    with pytest.raises(errors.UnknownMetricError, match='missing_metric="warn"'):
        session_loop([stop], epochs=2)
    # With a warning, training goes on to its end, as in Keras.
    assert session_loop([stop], epochs=2, missing_metric="warn").steps == 2 * STEPS
    assert 'monitors "acuracy", which this loop does not produce' in caplog.text


def test_monitor_of_what_an_earlier_callback_adds(keras: Any) -> None:
    adds = callback_of(
        keras, on_epoch_end=lambda self, epoch, logs: logs.update(extra=1.0)
    )
    stop = keras.callbacks.EarlyStopping("extra", mode="min", patience=1)
    assert session_loop([adds, stop], epochs=9).steps == 2 * STEPS
    has_no_epochs = callback_of(keras, on_train_begin=lambda self, logs: None)
    for guests in ([stop, adds], [has_no_epochs, stop]):
        with pytest.raises(errors.UnknownMetricError):
            begin(guests)


def test_a_monitor_that_no_validation_makes_is_found_before_the_first_step(
    keras: Any,
) -> None:
    """By one call of the function, which callbacks do not hear of, or by its names."""
    calls: list[int] = []

    def validate(session: Any, accuracy: float = 1.0) -> dict[str, float]:
        calls.append(int(session.run(v1.train.get_global_step())))
        return {"accuracy": accuracy}

    def train(monitor: str) -> int:
        calls.clear()
        tests: list[Any] = []
        noting = callback_of(
            keras, on_test_end=lambda self, logs: tests.append(dict(logs))
        )
        with tf.Graph().as_default():
            net = build()
            hooks = hb.as_hooks(
                [stopping(keras, monitor), noting],
                steps_per_epoch=3,
                epochs=2,
                validation=validate,
            )
            runs = until_stop(hooks, net.train_op, lambda step: feeds(net, step))
        assert tests == [{"accuracy": 1.0}] * 2
        return runs

    words = r'It produces: loss, val_accuracy.*Return "acc" from `validation=`'
    with pytest.raises(errors.UnknownMetricError, match=words):
        train("val_acc")
    assert calls == [0]
    assert train("val_accuracy") == 6 and calls == [0, 3, 6]
    assert train("loss") == 6 and calls == [3, 6]
    validate.metric_names = ["accuracy"]  # type: ignore[attr-defined]
    assert train("val_accuracy") == 6 and calls == [3, 6]
    with pytest.raises(errors.UnknownMetricError, match=words):
        train("val_acc")
    assert calls == []


def test_the_names_of_an_estimators_evaluation_are_those_of_its_graph(
    subtests: pytest.Subtests, keras: Any, tmp_path: Path
) -> None:
    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        if mode == estimators.ModeKeys.EVAL:
            graphs.append(mode)
        net = build(data=(features, labels))
        metrics = {"mae": v1.metrics.mean(net.mae)}
        return estimators.EstimatorSpec(
            mode, loss=net.loss, train_op=net.train_op, eval_metric_ops=metrics
        )

    def data() -> Any:
        return tf.data.Dataset.from_tensors((X[:4], Y[:4]))

    graphs: list[str] = []
    for monitor in ("val_mse", "val_mae"):
        with subtests.test(str(monitor)):
            estimator = estimators.Estimator(model_fn, str(tmp_path / monitor))
            hooks = hb.as_hooks(
                stopping(keras, monitor),
                steps_per_epoch=1,
                epochs=2,
                validation=(estimator, estimators.EvalSpec(data)),
            )
            if monitor == "val_mse":
                with pytest.raises(
                    errors.UnknownMetricError, match="loss, val_loss, val_"
                ):
                    estimator.train(lambda: data().repeat(), hooks=hooks)
                assert graphs == ["eval"]
                assert not (tmp_path / monitor / "eval").exists()
            else:
                estimator.train(lambda: data().repeat(), hooks=hooks)


def test_a_validation_that_gives_nothing_is_told_so(keras: Any) -> None:
    def nothing(session: Any) -> dict[str, float]:
        return {}

    words = r'produces: loss .*Return "loss" from `validation=`'
    with tf.Graph().as_default(), pytest.raises(errors.UnknownMetricError, match=words):
        net = build()
        hooks = hb.as_hooks(
            stopping(keras, "val_loss"),
            steps_per_epoch=1,
            logs={"loss": net.loss},
            validation=nothing,
        )
        until_stop(hooks, net.train_op, lambda step: feeds(net, step))
