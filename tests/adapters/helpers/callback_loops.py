"""The same small regression, in `Model.fit` and in a session loop."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

import hookbridge as hb

BATCH, STEPS, FEATURES = 4, 3, 2
_RANDOM = np.random.RandomState(7)
X = _RANDOM.randn(BATCH * STEPS, FEATURES).astype("float32")
Y = (X @ np.array([[1.5], [-2.0]], "float32") + 0.5).astype("float32")
VAL_X = _RANDOM.randn(8, FEATURES).astype("float32")
VAL_Y = (VAL_X @ np.array([[1.0], [-1.0]], "float32")).astype("float32")
KERNEL = np.array([[0.3], [0.7]], "float32")
BIAS = np.array([0.1], "float32")


class Loop(NamedTuple):
    """What the tests compare after a run."""

    history: dict[str, list[float]]
    weights: list[Any]
    steps: int


@functools.cache
def _model(keras: Any, metrics: tuple[str, ...], steps_per_execution: int) -> Any:
    """The compiled model; tracing a new one takes most of the time of a short `fit`."""
    model = keras.Sequential(
        [keras.layers.Input((FEATURES,)), keras.layers.Dense(1, name="dense")]
    )
    model.compile(
        keras.optimizers.SGD(),
        loss="mse",
        metrics=list(metrics),
        jit_compile=False,
        steps_per_execution=steps_per_execution,
    )
    return model


def fresh_model(
    keras: Any,
    rate: float = 0.1,
    metrics: Sequence[str] = ("mae",),
    steps_per_execution: int = 1,
) -> Any:
    """The compiled model before its first step."""
    model = _model(keras, tuple(metrics), steps_per_execution)
    model.set_weights([KERNEL, BIAS])
    for variable in model.optimizer.variables:
        variable.assign(np.zeros(variable.shape))
    model.optimizer.learning_rate.assign(rate)
    return model


def fit(
    keras: Any,
    callbacks: Sequence[Any],
    *,
    epochs: int = 4,
    rate: float = 0.1,
    validate: bool = True,
    metrics: Sequence[str] = ("mae",),
    model: Any = None,
    **options: Any,
) -> Loop:
    """Trains a Dense layer with `Model.fit`, in order, batch by batch."""
    model = model or fresh_model(keras, rate, metrics)
    data = {"x": X, "y": Y, "batch_size": BATCH, "shuffle": False}
    try:
        history = model.fit(
            **{**data, **options},
            epochs=epochs,
            callbacks=list(callbacks),
            validation_data=(VAL_X, VAL_Y) if validate else None,
            validation_batch_size=4,
            verbose=0,
        )
    finally:
        # After an exception Keras keeps its iterator over the validation data on the
        # model, which `_model` hands out again.
        for left in ("_eval_epoch_iterator", "_eval_data_handler"):
            if getattr(model, left, None) is not None:
                delattr(model, left)
    return Loop(
        history.history,
        model.get_weights(),
        int(np.asarray(model.optimizer.iterations)),
    )


class Net(NamedTuple):
    """The graph of the same model."""

    x: Any
    y: Any
    mae: Any
    loss: Any
    train_op: Any
    kernel: Any
    bias: Any


def build(
    rate: Any = 0.1,
    optimizer: Callable[[Any], Any] | None = None,
    *,
    data: tuple[Any, Any] | None = None,
    trains: bool = True,
) -> Net:
    """Builds the model in the default graph."""
    v1 = tf.compat.v1
    v1.train.get_or_create_global_step()
    x, y = data or (
        v1.placeholder(tf.float32, [None, FEATURES], name="x"),
        v1.placeholder(tf.float32, [None, 1], name="y"),
    )
    with v1.variable_scope("dense"):
        kernel = v1.get_variable("kernel", initializer=KERNEL)
        bias = v1.get_variable("bias", initializer=BIAS)
    error = x @ kernel + bias - y
    mae = tf.reduce_mean(tf.abs(error), name="mae")
    loss = tf.reduce_mean(tf.square(error), name="loss")
    make = optimizer or v1.train.GradientDescentOptimizer
    train_op = None
    if trains:
        train_op = make(rate).minimize(loss, global_step=v1.train.get_global_step())
    return Net(x, y, mae, loss, train_op, kernel, bias)


class GraphValidation:
    """Validates on the live variables and reports each batch."""

    metric_names = ("loss", "mae")

    def __init__(self, net: Net) -> None:
        self._net = net

    def run(self, session: Any, report: Any) -> Mapping[str, float]:
        """Means over two batches of four, as `fit` computes them."""
        sums = np.zeros(2, "float32")
        for batch in range(2):
            report.batch_begin(batch)
            rows = slice(batch * 4, batch * 4 + 4)
            sums += session.run(
                [self._net.loss, self._net.mae],
                {self._net.x: VAL_X[rows], self._net.y: VAL_Y[rows]},
            )
            means = sums / np.float32(batch + 1)
            report.batch_end(batch, dict(zip(self.metric_names, means, strict=True)))
        return dict(zip(self.metric_names, means, strict=True))


def feeds(net: Net, step: int) -> dict[Any, Any]:
    """The batch of a training step, in `fit`'s order."""
    rows = slice((step % STEPS) * BATCH, (step % STEPS + 1) * BATCH)
    return {net.x: X[rows], net.y: Y[rows]}


def begin(callbacks: Any, **options: Any) -> None:
    """Runs only `begin` of the hooks, on the graph of the regression."""
    options.setdefault("steps_per_epoch", STEPS)
    with tf.Graph().as_default():
        build()
        for hook in hb.as_hooks(callbacks, **options):
            hook.begin()


def until_stop(
    hooks: Sequence[Any],
    train_op: Any,
    feed: Callable[[int], Any] = lambda step: None,
    **options: Any,
) -> int:
    """Runs a train op in a session until a hook stops it; returns the number of runs.

    `options` are of `MonitoredTrainingSession`.
    """
    runs = 0
    with tf.compat.v1.train.MonitoredTrainingSession(hooks=hooks, **options) as session:
        while not session.should_stop():
            session.run(train_op, feed(runs))
            runs += 1
    return runs


def session_loop(
    callbacks: Sequence[Any],
    *,
    epochs: int | None = 4,
    rate: Any = 0.1,
    validate: bool = True,
    max_steps: int = 1000,
    optimizer: Callable[[Any], Any] | None = None,
    session_options: Mapping[str, Any] | None = None,
    wrap: Callable[[Sequence[Any]], Sequence[Any]] | None = None,
    **options: Any,
) -> Loop:
    """Trains the same model in a bare MonitoredTrainingSession loop."""
    # `fit` too keeps the last History of the list, and adds one where none is.
    own = [each for each in callbacks if type(each).__name__ == "History"]
    history = own[-1] if own else _history_like(callbacks)
    callbacks = [*callbacks] if own else [*callbacks, history]
    with tf.Graph().as_default():
        net = build(rate() if callable(rate) else rate, optimizer)
        options.setdefault("logs", {"mae": "mae:0"})
        hooks = hb.as_hooks(
            callbacks,
            steps_per_epoch=STEPS,
            epochs=epochs,
            validation=GraphValidation(net) if validate else None,
            **options,
        )
        if wrap is not None:
            hooks = list(wrap(hooks))
        step = tf.compat.v1.train.get_global_step()
        # Read after every other hook's `end`.
        final = tf.compat.v1.train.FinalOpsHook([net.kernel, net.bias, step])
        steps = 0
        with tf.compat.v1.train.MonitoredTrainingSession(
            hooks=[*hooks, final], **(session_options or {})
        ) as session:
            # A restarted run continues with the batch after its last step.
            if not session.should_stop():
                steps = int(session.run(tf.compat.v1.train.get_global_step()))
            last = steps + max_steps
            while not session.should_stop() and steps < last:
                session.run(net.train_op, feeds(net, steps))
                steps += 1
    *weights, end = final.final_ops_values or (-1,)
    return Loop(history.history, weights, int(end))


def _history_like(callbacks: Sequence[Any]) -> Any:
    """A History of the same Keras as the callbacks."""
    classes = [base for each in callbacks for base in type(each).__mro__]
    is_tf_keras = any(base.__module__.startswith("tf_keras.") for base in classes)
    name = "tf_keras" if is_tf_keras else "keras"
    return importlib.import_module(name).callbacks.History()


def assert_same(bridged: Loop, native: Loop, *, order: bool = True) -> None:
    """Checks that history, number of steps and weights of both runs agree."""
    if order:
        assert list(bridged.history) == list(native.history)
    assert set(bridged.history) == set(native.history)
    for key, expected in native.history.items():
        np.testing.assert_allclose(
            np.asarray(bridged.history[key], "float64"),
            np.asarray(expected, "float64"),
            rtol=2e-5,
            err_msg=key,
        )
    assert bridged.steps == native.steps
    for ours, theirs in zip(bridged.weights, native.weights, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=2e-5)
