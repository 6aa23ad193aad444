"""Runs a recorded scenario of `Model.fit` in a session loop."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from callback_recorder import recorder as plain_recorder
from hook_fetching import hook_of

import hookbridge as hb

v1 = tf.compat.v1
X = np.ones((8, 2), "float32")
Y = np.ones((8, 1), "float32")
ERRORS: dict[str, Callable[[], BaseException]] = {
    "valueerror": ValueError,
    "stopiteration": StopIteration,
    "keyboardinterrupt": KeyboardInterrupt,
    "outofrange": lambda: tf.errors.OutOfRangeError(None, None, "q"),
}


def recorder(keras: Any, log: list[Any], name: str, **acts: Any) -> Any:
    """The recorder, which writes down its parameters too."""
    made = plain_recorder(keras, log, name, **acts)

    def set_params(self: Any, params: Any) -> None:
        log.append(["set_params", name, dict(params)])
        keras.callbacks.Callback.set_params(self, params)

    type(made).set_params = set_params
    return made


class Net:
    """The recorder's model: one Dense layer, batches of `size` from an iterator."""

    def __init__(self, size: int = 4, steps_per_run: int = 1) -> None:
        v1.train.get_or_create_global_step()
        dataset = tf.data.Dataset.from_tensor_slices((X, Y)).batch(size)
        self.iterator = v1.data.make_initializable_iterator(dataset)
        x, y = self.iterator.get_next()
        self._kernel = v1.get_variable("dense/kernel", [2, 1])
        self.predictions = x @ self._kernel
        self.loss, _ = self._losses(x, y, "")
        self._held_out = [
            self._losses(X[rows], Y[rows], "val_")
            for rows in (slice(0, 4), slice(4, 8))
        ]
        self.train_op: Any = None
        self._steps_per_run = steps_per_run

    def add_train_op(self) -> None:
        """Makes the train op: one run of it takes `steps_per_run` steps."""
        for _ in range(self._steps_per_run):
            before = [] if self.train_op is None else [self.train_op]
            with tf.control_dependencies(before):
                self.train_op = v1.train.GradientDescentOptimizer(0.01).minimize(
                    self.loss, global_step=v1.train.get_global_step()
                )

    def _losses(self, x: Any, y: Any, prefix: str) -> tuple[Any, Any]:
        error = x @ self._kernel - y
        loss = tf.reduce_mean(tf.square(error), name=prefix + "loss")
        return loss, tf.reduce_mean(tf.abs(error), name=prefix + "mae")

    metric_names = ("loss", "mae")

    def run(self, session: Any, report: Any) -> Mapping[str, float]:
        """Validation in two batches."""
        result: dict[str, float] = {}
        for batch, tensors in enumerate(self._held_out):
            report.batch_begin(batch)
            result = dict(zip(self.metric_names, session.run(tensors), strict=True))
            report.batch_end(batch, result)
        return result


def replay(scenario: str, keras: Any, folder: Path) -> list[Any]:
    """The events of a scenario in a `MonitoredTrainingSession`."""
    log: list[Any] = []
    if scenario in ("evaluate", "predict"):
        _test_or_predict(scenario, keras, log)
    else:
        _train(scenario, keras, log, folder)
    return log


def _callbacks(scenario: str, keras: Any, log: list[Any]) -> list[Any]:
    kind, _, event = scenario.partition("_in_")
    first, last = recorder(keras, log, "A"), recorder(keras, log, "B")
    if kind == "stop":
        return [first, recorder(keras, log, "X", stop_in=event), last]
    if event:
        error = ERRORS[kind]
        return [first, recorder(keras, log, "X", raise_in=event, error=error), last]
    return [first, last] if scenario == "normal" else [first]


def _train(scenario: str, keras: Any, log: list[Any], folder: Path) -> None:
    steps_per_run = 2 if scenario == "steps_per_execution" else 1
    steps = {"steps_per_execution": 4, "dataset_unknown_size": None}.get(scenario, 2)
    epochs = {"validation": 1, "steps_per_execution": 1, "dataset_too_short": 3}.get(
        scenario, 2
    )
    params = {"verbose": 0, "epochs": epochs, "steps": steps}
    checkpoints = str(folder) if scenario == "initial_epoch" else None
    if checkpoints:
        _train_one_epoch(checkpoints)
    history = keras.callbacks.History()
    callbacks = _callbacks(scenario, keras, log)
    with tf.Graph().as_default():
        net = Net(8 // (steps or 2), steps_per_run)
        net.add_train_op()
        hooks = hb.as_hooks(
            [*callbacks, history],
            # Where the data ends an epoch, 100 is more than the data has.
            steps_per_epoch=steps or 100,
            epochs=epochs if steps else None,
            logs={"mae": "mae:0"},
            validation=net if scenario == "validation" else None,
            params=params,
        )
        runs: list[bool] = []
        # The first hook, so errors of others hide no run.
        counter = hook_of(
            after_run=lambda self, context, values: runs.append(
                context.original_args.fetches is net.train_op
            )
        )
        with (
            _outcome(log, history),
            v1.train.MonitoredTrainingSession(
                hooks=[counter, *hooks], checkpoint_dir=checkpoints
            ) as session,
        ):
            _loop(session, net, epochs if steps is None else None, steps or 0)
        done = sum(runs) * steps_per_run + (2 if checkpoints else 0)
        log.append(["AFTER", bool(callbacks[0].model.stop_training), done])


def _loop(session: Any, net: Net, epochs: int | None, steps: int) -> None:
    if epochs is not None:
        for _ in range(epochs):
            session.run(net.iterator.initializer)
            with contextlib.suppress(tf.errors.OutOfRangeError):
                while True:
                    session.run(net.train_op)
        return
    while not session.should_stop():
        session.run(net.iterator.initializer)
        for _ in range(2):
            if not session.should_stop():
                session.run(net.train_op)


def _train_one_epoch(checkpoints: str) -> None:
    with tf.Graph().as_default():
        net = Net()
        net.add_train_op()
        with v1.train.MonitoredTrainingSession(checkpoint_dir=checkpoints) as session:
            session.run(net.iterator.initializer)
            for _ in range(2):
                session.run(net.train_op)


def _test_or_predict(scenario: str, keras: Any, log: list[Any]) -> None:
    callback = recorder(keras, log, "A")
    params = {"verbose": 0, "epochs": 1, "steps": 2}
    with tf.Graph().as_default():
        net = Net()
        fetches = net.predictions
        if scenario == "evaluate":
            eval_step = v1.get_variable(
                "eval_step",
                initializer=np.int64(0),
                trainable=False,
                collections=[v1.GraphKeys.LOCAL_VARIABLES, v1.GraphKeys.EVAL_STEP],
            )
            fetches = v1.assign_add(eval_step, 1)
        hooks = hb.as_hooks(
            callback,
            logs={"mae": "mae:0"} if scenario == "evaluate" else None,
            params=params,
        )
        with v1.train.MonitoredTrainingSession(hooks=hooks) as session:
            session.run(net.iterator.initializer)
            for _ in range(2):
                session.run(fetches)
    log.append(["RETURNED"])
    step = int(np.asarray(callback.model.optimizer.iterations))
    log.append(["AFTER", bool(callback.model.stop_training), step])


@contextlib.contextmanager
def _outcome(log: list[Any], history: Any) -> Iterator[None]:
    """Writes down how a run ended."""
    try:
        yield
    except BaseException as error:
        message = str(error).split("\n")[0][:120]
        log.append(["ESCAPED", type(error).__name__, message])
    else:
        found = history.history
        log.append(["RETURNED", len(found.get("loss", [])), sorted(found)])
