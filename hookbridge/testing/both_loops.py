"""Runs one guest in a session loop and in `Model.fit`, and compares what is to be seen.

Both train the same small linear model, from the same weights, on the same batches.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from hookbridge import errors
from hookbridge.adapters.convert import as_callbacks, as_hooks
from hookbridge.adapters.keras_model.optimizers import steps_counted
from hookbridge.ground.arguments import choice, count
from hookbridge.testing.event_log import EventLog
from hookbridge.testing.recorders import RecordingHook

BATCH = 4
RATE = 0.1
KERNEL = np.array([[0.3], [0.7]], "float32")
BIAS = np.array([0.1], "float32")
_LOGGERS = ("absl", "tensorflow")
# What differs between two runs of the same loop: times, hosts and process ids.
_TIMES = re.compile(r"\(?\d+\.?\d* sec\)?|global_step/sec: \S+")
_NUMBER = re.compile(r"-?\d+\.\d+(?:e[-+]?\d+)?")
_EVENTS = re.compile(r"(events\.out\.tfevents).*?(\.v2)?$")


class Seen(NamedTuple):
    """What is to be seen of one run.

    Attributes:
      steps: how many training steps the model made.
      losses: the loss of the batch of each step, before its update.
      files: the files in the guest's folder, with their paths below it.
      lines: what was logged below the guest's folder, without times.
      weights: kernel [2, 1] and bias [1] after the run.
    """

    steps: int
    losses: list[float]
    files: list[str]
    lines: list[str]
    weights: list[Any]


class Both(NamedTuple):
    """What is to be seen of both runs."""

    session: Seen
    fit: Seen


class BothLoops:
    """Runs guests in both loops; the fixture `both_loops` is one.

    Args:
      folder: where each run of a guest has a folder of its own.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._calls = 0

    def __call__(
        self,
        make: Callable[[Path], Any],
        *,
        epochs: int = 2,
        steps_per_epoch: int = 4,
        same: tuple[str, ...] = Seen._fields,
    ) -> Both:
        """Run a guest in a session and in `fit`, and compare the runs.

        Args:
          make: is called once for each loop with an empty folder, a `pathlib.Path`, and
            returns a new hook or callback, or a list of them. TensorFlow's own hooks
            take the folder as `str(folder)`.
          epochs: passes over the data.
          steps_per_epoch: training steps of a pass; a batch has 4 rows.
          same: the fields of `Seen` that are compared.

        Raises:
          AssertionError: the runs differ; the message has both values of each field.
          hookbridge.errors.InvalidArgumentError: an argument is none of these, before
            any training.
        """
        if not callable(make):
            raise errors.InvalidArgumentError(
                f"Received a `{type(make).__name__}` as `make`; expected what makes a "
                "new guest for each of the two loops: a function of a folder, such as "
                "`lambda folder: MyHook()`."
            )
        for field in same:
            choice("same", field, Seen._fields)
        count("epochs", epochs)
        count("steps_per_epoch", steps_per_epoch)
        self._calls += 1
        x = np.random.RandomState(7).randn(BATCH * steps_per_epoch, 2).astype("float32")
        y = x @ np.array([[1.5], [-2.0]], "float32") + np.float32(0.5)
        runs = []
        for name, run in (("session", _in_session), ("fit", _in_fit)):
            folder = self._folder / f"both_loops-{self._calls}" / name
            folder.mkdir(parents=True)
            with _captured_log(folder) as lines:
                made = make(folder)
                guests = list(made) if isinstance(made, list | tuple) else [made]
                steps, losses, weights = run(guests, x, y, epochs)
            files = [_plain(path, folder) for path in folder.rglob("*")]
            runs.append(Seen(steps, losses, sorted(files), lines, weights))
        both = Both(*runs)
        wrong = [
            f"{field}: {getattr(both.session, field)} in a session, "
            f"{getattr(both.fit, field)} in fit"
            for field in same
            if not _alike(getattr(both.session, field), getattr(both.fit, field))
        ]
        if wrong:  # an `assert` would check nothing under `python -O`
            raise AssertionError("The loops differ. " + "; ".join(wrong))
        return both


def _in_session(guests: list[Any], x: Any, y: Any, epochs: int) -> Any:
    """Return step, losses and weights of a run in a `MonitoredTrainingSession`."""
    v1 = tf.compat.v1
    record = RecordingHook(EventLog(), fetches="loss:0")
    per_epoch = len(x) // BATCH
    with tf.Graph().as_default():
        step = v1.train.get_or_create_global_step()
        inputs = v1.placeholder(tf.float32, [None, 2])
        targets = v1.placeholder(tf.float32, [None, 1])
        kernel = v1.get_variable("kernel", initializer=KERNEL)
        bias = v1.get_variable("bias", initializer=BIAS)
        loss = tf.reduce_mean((inputs @ kernel + bias - targets) ** 2, name="loss")
        train_op = v1.train.GradientDescentOptimizer(RATE).minimize(loss, step)
        hooks = as_hooks(
            [*guests, record],
            steps_per_epoch=per_epoch,
            epochs=epochs,
            logs={"loss": loss},
        )
        final = v1.train.FinalOpsHook([step, kernel, bias])
        made = 0
        with v1.train.MonitoredTrainingSession(hooks=[*hooks, final]) as session:
            while not session.should_stop():
                rows = slice(made % per_epoch * BATCH, (made % per_epoch + 1) * BATCH)
                session.run(train_op, {inputs: x[rows], targets: y[rows]})
                made += 1
    steps, *weights = final.final_ops_values
    return int(steps), [float(value) for value in record.results()], weights


def _in_fit(guests: list[Any], x: object, y: object, epochs: int) -> Any:
    """Step, losses and weights of a run in `fit` of `tf.keras`."""
    keras = tf.keras
    record = RecordingHook(EventLog(), fetches="loss:0")
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1, name="dense")])
    model.compile(keras.optimizers.SGD(RATE), "mse")
    model.set_weights([KERNEL, BIAS])
    model.fit(
        x,
        y,
        batch_size=BATCH,
        epochs=epochs,
        shuffle=False,
        verbose=0,
        callbacks=as_callbacks([*guests, record]),
    )
    steps = steps_counted(model)
    return steps, [float(value) for value in record.results()], model.get_weights()


@contextmanager
def _captured_log(folder: Path) -> Iterator[list[str]]:
    """Yield the lines that guests log, without times and the folder's name.

    What TensorFlow says of graphs and sessions is not a line of a guest, nor what it
    says once in a process of names that are deprecated.
    """
    lines: list[str] = []

    class Lines(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            text = record.getMessage().replace(str(folder), "FOLDER")
            if not text.startswith(_OF_A_LOOP) and _DEPRECATED not in text:
                lines.append(_TIMES.sub("TIME", text))

    handler = Lines()
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
    try:
        yield lines
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.removeHandler(handler)
            logger.setLevel(level)


_DEPRECATED = "is deprecated and will be removed in a future version"
_OF_A_LOOP = (
    "Graph was finalized",
    "Running local_init_op",
    "Done running local_init_op",
    "Create CheckpointSaverHook",
    "Calling checkpoint listeners",
    "hookbridge: training goes on from step",
    "Callback method `",  # how long it takes
)


def _plain(path: Path, folder: Path) -> str:
    return _EVENTS.sub(r"\1\2", path.relative_to(folder).as_posix())


def _alike(one: Any, other: Any) -> bool:
    """Return whether two values are the same, numbers to a thousandth of their size."""
    if isinstance(one, list):
        same_length = len(one) == len(other)
        return same_length and all(map(_alike, one, other))
    if isinstance(one, str):
        numbers = _NUMBER.findall(one), _NUMBER.findall(other)
        is_text_same = _NUMBER.sub("#", one) == _NUMBER.sub("#", other)
        return is_text_same and _alike(*([float(n) for n in ns] for ns in numbers))
    return bool(np.allclose(one, other, rtol=1e-3, atol=1e-6))
