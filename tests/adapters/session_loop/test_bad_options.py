"""Bad options of `as_hooks`: the error, its words, and no step before it."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import pytest
import tensorflow as tf

import hookbridge as hb
from hookbridge import compat

v1 = tf.compat.v1
INVALID = hb.errors.InvalidArgumentError


def keras2() -> Any:
    return importlib.import_module(
        "tf_keras" if compat.tf_version() > (2, 15) else "keras"
    )


class Loop:
    """A session loop; `options(loop)` gives the options of its `as_hooks`.

    Attributes:
      steps: how many steps were made.
    """

    def __init__(self, options: Callable[[Loop], Mapping[str, Any]]) -> None:
        self.steps = 0
        with tf.init_scope():
            self.eager = tf.constant(1.0)
            self.eager_model = keras2().Sequential([keras2().layers.Dense(1)])
            self.eager_model.build((None, 2))
        with tf.Graph().as_default():
            x = v1.get_variable("x", [], initializer=v1.ones_initializer())
            self.loss = tf.identity(x**2, name="loss")
            self.vector = tf.constant([0.1, 0.2], name="vector")
            self.text = tf.constant("text", name="text")
            step = v1.train.get_or_create_global_step()
            self.op = v1.train.GradientDescentOptimizer(0.1).minimize(self.loss, step)
            self.run({"steps_per_epoch": 2, "logs": {}, **options(self)})

    def run(self, options: Mapping[str, Any]) -> None:
        callback = keras2().callbacks.LambdaCallback(on_epoch_end=lambda *_: None)
        hooks = hb.as_hooks([callback], **options)
        with v1.train.MonitoredSession(hooks=hooks) as session:
            for _ in range(4):
                session.run(self.op)
                self.steps += 1


def option(name: str, make: Callable[[Loop], Any]) -> Callable[[Loop], Any]:
    return lambda loop: {name: make(loop)}


def log(spec: Callable[[Loop], Any], key: str = "acc") -> Callable[[Loop], Any]:
    return option("logs", lambda loop: {key: spec(loop)})


SESSION: dict[str, Callable[[Loop], Mapping[str, Any]]] = {
    r"logs\['acc'\] is None; expected a tensor": log(lambda _: None),
    r"logs\['acc'\] is <tf.Operation .*exp": log(lambda loop: loop.op),
    r"logs\['acc'\] is `vector:0` .*shape \(2,\); expected a scalar": log(
        lambda loop: loop.vector
    ),
    r"logs\['acc'\] is `text:0` of type string .*expected a scalar": log(
        lambda loop: loop.text
    ),
    r"logs\['acc'\] is .*shape \(2,\); expected a scalar": log(
        lambda loop: (loop.vector, loop.vector)
    ),
    r"logs\['acc'\] is <tf.Tensor.* expected a tensor of the training graph": log(
        lambda loop: loop.eager
    ),
    r"`logs\['acc'\]` is the function .*\(x\)`; expected .*without arguments": log(
        lambda _: lambda x: x
    ),
    "`logs` has the key ''; exp": log(lambda loop: loop.loss, ""),
    "`logs` has the key 'val_acc'; expected .*`validation=`": log(
        lambda loop: loop.loss, "val_acc"
    ),
    "`validation` is 'accuracy'; expected a function": option(
        "validation", lambda _: "accuracy"
    ),
    r"`validation` is the function .*\(model, data\)`; expected .*without arg": option(
        "validation", lambda _: lambda model, data: {"loss": 1.0}
    ),
    r"`validation.run` has the signature `\(self\)`; expected `run\(": option(
        "validation", lambda _: SimpleNamespace(run=lambda self: {})
    ),
    "`model` is <class .*expected the tf.keras or tf_keras model": option(
        "model", lambda _: keras2().Model
    ),
    "`model` is .*; expected the tf.keras or tf_keras model": option(
        "model", lambda _: keras2().layers.Dense(1)
    ),
    r"`model` is the function .*\(graph\)`; expected .* without arguments": option(
        "model", lambda _: lambda graph: None
    ),
    r"`learning_rate` is `vector:0` .*shape \(2,\); expected a scalar": option(
        "learning_rate", lambda loop: loop.vector
    ),
    "`learning_rate` is `text:0` of type string .*expected a scalar": option(
        "learning_rate", lambda loop: "text"
    ),
    "`learning_rate` is <tf.Tensor.* expected a tensor or variable of the": option(
        "learning_rate", lambda loop: loop.eager
    ),
    "`model` is .* is not in the graph of this session. Build the model inside": option(
        "model", lambda loop: loop.eager_model
    ),
}


@pytest.mark.parametrize("words", SESSION)
def test_options_of_a_session_are_refused_before_its_first_step(words: str) -> None:
    loops: list[Loop] = []

    def noted(loop: Loop) -> Mapping[str, Any]:
        loops.append(loop)
        return SESSION[words](loop)

    with pytest.raises(INVALID, match=words):
        Loop(noted)
    assert loops[0].steps == 0


@pytest.mark.parametrize("result", ["text", {"a": "text"}, {1: 1.0}, None])
def test_a_validation_is_told_what_it_returns_when_it_has_run(result: Any) -> None:
    # Only a call can show what a function returns.
    words = f"`validation=` returned {re.escape(repr(result))}; expected a dict"
    with pytest.raises(INVALID, match=words):
        Loop(lambda _: {"validation": lambda: result})
