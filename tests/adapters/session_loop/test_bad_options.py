"""Bad options of `as_hooks`: the error and its words, in `begin` or before."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import tensorflow as tf
from callback_loops import build, feeds, until_stop
from estimator_models import KERAS2

import hookbridge as hb

v1 = tf.compat.v1
INVALID = hb.errors.InvalidArgumentError
KERAS: Any = importlib.import_module(KERAS2)


class Graph:
    """What the options of a row name: in the default graph, or outside."""

    def __init__(self) -> None:
        self.eager = tf.constant(1.0)
        self.eager_model = KERAS.Sequential([KERAS.layers.Dense(1)])
        self.eager_model.build((None, 2))
        with tf.Graph().as_default():
            self.of_another = tf.constant(1.0)

    def build(self) -> None:
        """Fills the default graph."""
        self.loss = build().loss
        self.vector = tf.constant([0.1, 0.2], name="vector")
        self.text = tf.constant("text", name="text")


def option(name: str, make: Callable[[Graph], Any]) -> Callable[[Graph], Any]:
    return lambda graph: {name: make(graph)}


def log(spec: Callable[[Graph], Any], key: str = "acc") -> Callable[[Graph], Any]:
    return option("logs", lambda graph: {key: spec(graph)})


ROWS: dict[str, Callable[[Graph], Any]] = {
    r"logs\['acc'\] is None; expected a tensor": log(lambda _: None),
    r"logs\['acc'\] is <tf.Operation .*exp": log(lambda graph: graph.loss.op),
    r"logs\['acc'\] is `vector:0` .*shape \(2,\); expected a scalar": log(
        lambda graph: graph.vector
    ),
    r"logs\['acc'\] is `text:0` of type string .*expected a scalar": log(
        lambda graph: graph.text
    ),
    r"logs\['acc'\] is .*shape \(2,\); expected a scalar": log(
        lambda graph: (graph.vector, graph.vector)
    ),
    r"logs\['acc'\] is <tf.Tensor.* expected a tensor of the training graph": log(
        lambda graph: graph.eager
    ),
    r"logs\['acc'\]": log(lambda graph: graph.of_another),
    r"`logs\['acc'\]` is the function .*\(x\)`; expected .*without arguments": log(
        lambda _: lambda x: x
    ),
    r'logs\[\'acc\'\] names the tensor "maee:0".*"mae:0"': log(lambda _: "maee:0"),
    "`logs` has the key ''; exp": log(lambda graph: graph.loss, ""),
    "`logs` has the key 'val_acc'; expected .*`validation=`": log(
        lambda graph: graph.loss, "val_acc"
    ),
    "`validation` is 'accuracy'; expected a function": option(
        "validation", lambda _: "accuracy"
    ),
    r"`validation` is the function .*\(model, data\)`; expected .*without arg": option(
        "validation", lambda _: lambda model, data: {"loss": 1.0}
    ),
    r"`validation.run` is .*\(self\)`; expected .*`validation.run\(session": option(
        "validation", lambda _: SimpleNamespace(run=lambda self: {})
    ),
    "`model` is <class .*expected the tf.keras or tf_keras model": option(
        "model", lambda _: KERAS.Model
    ),
    "`model` is .*; expected the tf.keras or tf_keras model": option(
        "model", lambda _: KERAS.layers.Dense(1)
    ),
    r"`model` is the function .*\(graph\)`; expected .* without arguments": option(
        "model", lambda _: lambda graph: None
    ),
    "`model` is .* is not in the graph of this session. Build the model inside": option(
        "model", lambda graph: graph.eager_model
    ),
    r"`learning_rate` is `vector:0` .*shape \(2,\); expected a scalar": option(
        "learning_rate", lambda graph: graph.vector
    ),
    "`learning_rate` is `text:0` of type string .*expected a scalar": option(
        "learning_rate", lambda graph: "text"
    ),
    "`learning_rate` is <tf.Tensor.* expected a tensor or variable of the": option(
        "learning_rate", lambda graph: graph.eager
    ),
    **{
        rf"`{name}\b": option(name, lambda _, value=value: value)  # type: ignore[misc]
        for name, value in (
            ("epochs", float("inf")),
            ("logs", ["loss"]),
            ("params", 3),
            ("validation", ("a", "b")),
            ("missing_metric", "ignore"),
            ("hooks_on", "batches"),
        )
    },
    **{
        rf"`steps_per_epoch={re.escape(repr(value))}": option(
            "steps_per_epoch",
            lambda _, value=value: value,  # type: ignore[misc]
        )
        for value in (0, 1.5, float("nan"), "many", [1], -1, True)
    },
}


@pytest.mark.parametrize("words", ROWS)
def test_options_are_refused_before_a_session(words: str) -> None:
    graph = Graph()
    callback = KERAS.callbacks.LambdaCallback(on_epoch_end=lambda *_: None)
    errors = (INVALID, hb.errors.UnknownTensorError)
    with tf.Graph().as_default(), pytest.raises(errors, match=words):
        graph.build()
        options = {"steps_per_epoch": 2, **ROWS[words](graph)}
        hb.as_hooks([callback], **options)[0].begin()


def test_a_validation_is_told_what_it_returns_when_it_has_run() -> None:
    """Only a call can show what a function returns."""
    for result in ("text", {"a": "text"}, {1: 1.0}, None):
        words = f"`validation=` returned {re.escape(repr(result))}; expected a dict"
        with tf.Graph().as_default(), pytest.raises(INVALID, match=words):
            net = build()
            hooks = hb.as_hooks(
                [KERAS.callbacks.History()],
                steps_per_epoch=1,
                validation=lambda: result,  # noqa: B023
            )
            until_stop(hooks, net.train_op, lambda step: feeds(net, step))  # noqa: B023
