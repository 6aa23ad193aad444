"""The loops of `Model.fit` that benchmarks measure, and the floor below them."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import tensorflow as tf

import hookbridge as hb
from benchmarks import base
from benchmarks.overhead_cases import (
    RATE,
    SIZES,
    EmptyCallback,
    IdleHook,
    Work,
    session_case,
    timed_epoch,
)


def keras_model(work: Work, make: Callable[..., Any] = tf.keras.Model) -> Any:
    """The network as a Keras model, made by `make`, with the same first weights."""
    inputs, hidden, outputs = SIZES
    x = tf.keras.Input([inputs])
    h = tf.keras.layers.Dense(hidden, activation="relu", name="hidden")(x)
    model = make(x, tf.keras.layers.Dense(outputs, name="out")(h))
    model.set_weights(work.weights)
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    if tf.executing_eagerly():
        optimizer = tf.keras.optimizers.SGD(RATE)
        model.compile(optimizer=optimizer, loss=loss, jit_compile=False)
    else:  # in a v1 graph
        model.compile(optimizer=tf.keras.optimizers.legacy.SGD(RATE), loss=loss)
    return model


def server_model() -> Any:
    """A Keras 2 model on the parameter servers of `TF_CONFIG`, which hardly learns."""
    inputs, hidden, outputs = SIZES
    layers = tf.keras.layers
    with hb.loops.parameter_server_strategy().scope():
        model = tf.keras.Sequential(
            [layers.Dense(hidden, "relu", input_shape=[inputs]), layers.Dense(outputs)]
        )
        loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(tf.keras.optimizers.SGD(1e-6), loss)
    return model


class EpochClock(tf.keras.callbacks.Callback):  # type: ignore[misc]
    """Times the last epoch; the first epoch builds and traces the step."""

    def __init__(self) -> None:
        super().__init__()
        self.secs = 0.0

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self.secs = -base.clock()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.secs += base.clock()


def fit_case(
    name: str, work: Work, callbacks: list[Any], model: Any = None
) -> base.Case:
    """`Model.fit` of two epochs; the second is timed."""
    data = work.dataset()
    model = keras_model(work) if model is None else model

    def run() -> base.Sample:
        clock = EpochClock()
        history = model.fit(
            data, epochs=2, shuffle=False, verbose=0, callbacks=[*callbacks, clock]
        )
        return base.Sample(clock.secs / work.steps, history.history["loss"][-1])

    return base.Case(name, run)


def idle_cases(work: Work) -> list[base.Case]:
    """1 and 10 callbacks with empty batch methods, each beside as many idle hooks."""
    return [
        fit_case("1 empty callback", work, [EmptyCallback()]),
        fit_case("1 idle hook", work, hb.as_callbacks([IdleHook()])),
        fit_case("10 empty callbacks", work, [EmptyCallback() for _ in range(10)]),
        fit_case(
            "10 idle hooks", work, hb.as_callbacks([IdleHook() for _ in range(10)])
        ),
    ]


def guest_cases(
    work: Work,
    hooks: list[Any],
    callbacks: list[Any],
    names: tuple[str, str],
    in_fit: bool,
) -> list[AbstractContextManager[base.Case]]:
    """Hooks and callbacks in one loop, where either the ones or the others are native.

    The native ones come first; `names` are those of hooks and of callbacks.
    """
    of_hooks, of_callbacks = names
    if in_fit:
        return [
            contextlib.nullcontext(fit_case(of_callbacks, work, callbacks)),
            contextlib.nullcontext(fit_case(of_hooks, work, hb.as_callbacks(hooks))),
        ]
    bridged = hb.as_hooks(callbacks, steps_per_epoch=work.steps)
    return [
        session_case(of_hooks, work, hooks),
        session_case(of_callbacks, work, bridged),
    ]


def function_case(work: Work) -> base.Case:
    """The floor of `fit`: a `tf.function` that takes a batch and trains on it."""
    weights = [tf.Variable(value) for value in work.weights]
    optimizer_step = tf.Variable(0, dtype=tf.int64)

    @tf.function  # type: ignore[untyped-decorator]
    def step(iterator: Any) -> Any:
        x, y = next(iterator)
        with tf.GradientTape() as tape:
            loss = work.loss(x, y, weights)
        for weight, gradient in zip(weights, tape.gradient(loss, weights), strict=True):
            weight.assign_sub(RATE * gradient)
        optimizer_step.assign_add(1)
        return loss

    def one_step(iterator: Any) -> float:
        return float(step(iterator))

    data = work.dataset()

    def run() -> base.Sample:
        # The second of two epochs is timed, as in `fit_case`.
        for _ in range(2):
            iterator = iter(data)
            sample = timed_epoch(work, functools.partial(one_step, iterator))
        return sample

    return base.Case("tf.function", run)
