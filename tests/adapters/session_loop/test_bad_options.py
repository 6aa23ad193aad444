"""Bad options of `as_hooks`: the error and its words, in `begin` or before."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from callback_loops import build, feeds, until_stop

import hookbridge as hb

INVALID = hb.errors.InvalidArgumentError


def test_options_are_refused_before_a_session(keras2: Any) -> None:
    eager = tf.constant(1.0)
    eager_model = keras2.Sequential([keras2.layers.Dense(1)])
    eager_model.build((None, 2))
    with tf.Graph().as_default():
        of_another = tf.constant(1.0)
        model_of_another = keras2.Sequential([keras2.layers.Dense(1, input_shape=(2,))])
    session_graph = tf.Graph()
    with session_graph.as_default():
        loss = build().loss
        vector = tf.constant([0.1, 0.2], name="vector")
        text = tf.constant("text", name="text")
    # A value of `logs["acc"]` -> words of the error, which names the entry.
    logs: list[tuple[Any, str]] = [
        (None, r" is None; expected a tensor"),
        (loss.op, r" is <tf.Operation .*exp"),
        (vector, r" is `vector:0` .*shape \(2,\); expected a scalar"),
        (text, r" is `text:0` of type string .*expected a scalar"),
        ((vector, vector), r" is .*shape \(2,\); expected a scalar"),
        (eager, r" is <tf.Tensor.* expected a tensor of the training graph"),
        (of_another, ""),
        (lambda x: x, r"` is the function .*\(x\)`; expected .*without arguments"),
        ("maee:0", r' names the tensor "maee:0".*`mae:0`'),
    ]
    # Another option, its value, words of the error.
    others: list[tuple[str, Any, str]] = [
        ("logs", {"": loss}, "`logs` has the key ''; exp"),
        ("logs", {"val_acc": loss}, "has the key 'val_acc'; expected .*`validation=`"),
        ("logs", ["loss"], r"`logs\b"),
        ("validation", "accuracy", "`validation` is 'accuracy'; expected a function"),
        (
            "validation",
            lambda model, data: {"loss": 1.0},
            r"is the function .*\(model, data\)`; .*without arg.*with the session",
        ),
        (
            "validation",
            SimpleNamespace(run=lambda self: {}),
            r"`validation.run` is .*\(self\)`; expected .*`validation.run\(session",
        ),
        ("validation", ("a", "b"), r"`validation\b"),
        ("model", keras2.Model, "is <class .*expected the tf.keras or tf_keras model"),
        ("model", keras2.layers.Dense(1), "expected the tf.keras or tf_keras model"),
        (
            "model",
            lambda graph: None,
            r"`model` is the function .*\(graph\)`; expected .* without arguments",
        ),
        ("model", model_of_another, "not in the graph"),
        ("model", eager_model, "is not in the graph of this session. Build the model"),
        (
            "learning_rate",
            vector,
            r"`learning_rate` is `vector:0` .*shape \(2,\); expected a scalar",
        ),
        ("learning_rate", "text", "is `text:0` of type string .*expected a scalar"),
        (
            "learning_rate",
            eager,
            "`learning_rate` is <tf.Tensor.* expected a tensor or variable of the",
        ),
        ("epochs", float("inf"), r"`epochs\b"),
        ("validation_freq", 0, r"`validation_freq=0`; expected an integer"),
        ("validation_freq", None, r"`validation_freq=None`; expected the number"),
        ("validation_freq", [2, "3"], r"`validation_freq='3'`; expected"),
        ("validation_freq", [], r"`validation_freq=\[\]`; expected at least"),
        ("validation_freq", [1, None], r"`validation_freq=\[1, None\]`; expected"),
        ("params", 3, r"`params\b"),
        ("missing_metric", "ignore", r"`missing_metric\b"),
        ("hooks_on", "batches", r"`hooks_on\b"),
        *(
            ("steps_per_epoch", value, rf"`steps_per_epoch={re.escape(repr(value))}")
            for value in (0, 1.5, float("nan"), "many", [1], -1, True)
        ),
    ]
    others += [
        ("logs", {"acc": value}, rf"logs\['acc'\]{words}") for value, words in logs
    ]
    callback = keras2.callbacks.LambdaCallback(on_epoch_end=lambda *_: None)
    for name, value, words in others:
        options = {"steps_per_epoch": 2, name: value}
        with (
            session_graph.as_default(),
            pytest.raises((INVALID, hb.errors.UnknownTensorError), match=words),
        ):
            hb.as_hooks([callback], **options)[0].begin()


def test_a_validation_is_told_what_it_returns_when_it_has_run(keras2: Any) -> None:
    """Only a call can show what a function returns."""
    results: tuple[Any, ...] = ("text", {"a": "text"}, {1: 1.0}, None)
    results += tuple({"a": each} for each in ([1, 2], [], [[1], [2, 3]], None, 1j))
    results += ({"a": np.array([1.5, 2.0])},)
    for result in results:
        words = f"`validation=` returned {re.escape(repr(result))}; expected a dict"
        with tf.Graph().as_default(), pytest.raises(INVALID, match=words):
            net = build()
            hooks = hb.as_hooks(
                [keras2.callbacks.History()],
                steps_per_epoch=1,
                validation=lambda: result,  # noqa: B023
            )
            until_stop(hooks, net.train_op, lambda step: feeds(net, step))  # noqa: B023


def test_a_validation_that_does_not_run_its_tensors(keras2: Any) -> None:
    """A tensor in place of its value, and a run without the batch."""
    cases: tuple[tuple[Any, str], ...] = (
        (
            lambda session, loss: {"loss": loss},
            '"loss:0" has a value only in a run of .*run',
        ),
        (
            lambda session, loss: loss,
            "has a value only in a run of the session; run it",
        ),
        (
            lambda session, loss: {"loss": session.run(loss)},
            r"`validation=` ran tensors .* without a value .*session.run\(loss, \{x",
        ),
    )
    for result, words in cases:
        with tf.Graph().as_default(), pytest.raises(INVALID, match=words):
            net = build()
            hooks = hb.as_hooks(
                [keras2.callbacks.History()],
                steps_per_epoch=1,
                validation=_given(result, net.loss),
            )
            until_stop(hooks, net.train_op, lambda step: feeds(net, step))  # noqa: B023


def _given(result: Any, loss: Any) -> Any:
    return lambda session: result(session, loss)


def validated(keras2: Any, result: Any, *callbacks: Any, **options: Any) -> list[Any]:
    """The logs of the epochs of a training with a validation."""
    seen: list[Any] = []
    look = keras2.callbacks.LambdaCallback(
        on_epoch_end=lambda _, logs: seen.append(logs)
    )
    with tf.Graph().as_default():
        net = build()
        hooks = hb.as_hooks(
            [*callbacks, look], steps_per_epoch=1, validation=lambda: result, **options
        )
        until_stop(hooks, net.train_op, lambda step: feeds(net, step))
    return seen


def test_one_element_of_a_validation_is_a_float(keras2: Any) -> None:
    values = (1.5, [1.5], np.array(1.5), np.array([1.5]), np.full((1, 1), 1.5, "f"))
    for value in values:
        (logs,) = validated(keras2, {"a": value}, epochs=1)
        assert type(logs["val_a"]) is float
        assert logs["val_a"] == 1.5


def test_a_metric_with_and_without_prefix_is_refused(keras2: Any) -> None:
    result = {"val_loss": 1.0, "loss": 2.0}
    with pytest.raises(INVALID, match='returned "loss" and "val_loss", which are the'):
        validated(keras2, result, epochs=1)


@pytest.mark.parametrize("frequency", [[9], [9, 5], {5}, 5])
def test_monitor_of_a_validation_that_never_comes(keras2: Any, frequency: Any) -> None:
    """It is refused before the first step, and without such a monitor nothing is."""
    options = {"epochs": 4, "validation_freq": frequency}
    result, monitor = {"loss": 1.0}, keras2.callbacks.EarlyStopping("val_loss")
    words = 'monitors "val_loss", and with `validation_freq=.*` none of the 4 epochs'
    with pytest.raises(hb.errors.UnknownMetricError, match=words):
        validated(keras2, result, monitor, **options)
    assert len(validated(keras2, result, **options)) == 4
    seen = validated(keras2, result, monitor, missing_metric="warn", **options)
    assert len(seen) == 4
