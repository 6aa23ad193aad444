"""The network, the guests and the loops that `bridge_overhead.py` measures.

All loops train the same network from the same weights on the same batches.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from benchmarks import base

v1: Any = tf.compat.v1

BATCH_SIZE = 32
SIZES = (64, 32, 10)
RATE = 0.01


class LossHook(v1.train.SessionRunHook):  # type: ignore[misc]
    """Fetches and keeps the loss of every step."""

    def __init__(self) -> None:
        self.losses: list[float] = []

    def before_run(self, run_context: Any) -> Any:
        return v1.train.SessionRunArgs("loss:0")

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self.losses.append(float(run_values.results))


class _Losses(tf.keras.callbacks.Callback):  # type: ignore[misc]
    """Base class of the callbacks that keep losses."""

    def __init__(self) -> None:
        super().__init__()
        self.losses: list[float] = []


class LossCallback(_Losses):
    """Keeps `logs["loss"]` of every step, which is the mean of the epoch so far."""

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.losses.append(float(logs["loss"]))


class EpochCallback(_Losses):
    """Keeps the loss of every epoch, as most Keras callbacks do."""

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.losses.append(float(logs["loss"]))


class EmptyCallback(tf.keras.callbacks.Callback):  # type: ignore[misc]
    """Overrides the batch methods and does nothing in them."""

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        pass

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        pass


class IdleHook(v1.train.SessionRunHook):  # type: ignore[misc]
    """Overrides the methods of a run and fetches nothing."""

    def before_run(self, run_context: Any) -> None:
        pass

    def after_run(self, run_context: Any, run_values: Any) -> None:
        pass


class Work:
    """The network, its first weights and `steps` batches, the same for all cases."""

    def __init__(self, steps: int) -> None:
        random = np.random.default_rng(0)
        inputs, hidden, outputs = SIZES
        self.steps = steps
        self.x = random.normal(size=[steps * BATCH_SIZE, inputs]).astype("float32")
        self.y = random.integers(outputs, size=[steps * BATCH_SIZE])
        self.weights = [
            random.normal(size=[inputs, hidden], scale=0.1).astype("float32"),
            np.zeros([hidden], "float32"),
            random.normal(size=[hidden, outputs], scale=0.1).astype("float32"),
            np.zeros([outputs], "float32"),
        ]

    def dataset(self) -> Any:
        """The batches `([N, 64], [N])` of one epoch, in the same order each time."""
        data = tf.data.Dataset.from_tensor_slices((self.x, self.y))
        return data.batch(BATCH_SIZE, drop_remainder=True)

    def batches(self) -> list[tuple[Any, Any]]:
        """The same batches as arrays."""
        rows = range(0, len(self.x), BATCH_SIZE)
        return [(self.x[i : i + BATCH_SIZE], self.y[i : i + BATCH_SIZE]) for i in rows]

    @staticmethod
    def loss(x: Any, y: Any, weights: list[Any]) -> Any:
        """Mean cross-entropy of a two-layer network."""
        w1, b1, w2, b2 = weights
        logits = tf.nn.relu(x @ w1 + b1) @ w2 + b2
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits)
        return tf.reduce_mean(losses)


def timed_epoch(work: Work, step: Callable[[], float]) -> base.Sample:
    """Times `work.steps` calls and averages the losses that they return."""
    losses = []
    start = base.clock()
    for _ in range(work.steps):
        losses.append(step())
    secs = base.clock() - start
    return base.Sample(secs / work.steps, float(np.mean(losses)))


def graph_step(work: Work, batch: Any = None) -> tuple[Any, Any]:
    """Builds the network in the default graph; returns the train op and the loss."""
    v1.train.get_or_create_global_step()
    if batch is None:
        batch = v1.data.make_one_shot_iterator(work.dataset().repeat()).get_next()
    x, y = batch
    weights = [
        v1.get_variable(f"w{i}", initializer=value)
        for i, value in enumerate(work.weights)
    ]
    loss = tf.identity(work.loss(x, y, weights), name="loss")
    v1.losses.add_loss(loss)
    optimizer = v1.train.GradientDescentOptimizer(RATE)
    return optimizer.minimize(loss, v1.train.get_global_step()), loss


@contextlib.contextmanager
def session_case(
    name: str,
    work: Work,
    hooks: list[Any],
    make: Callable[..., Any] = v1.train.MonitoredTrainingSession,
    *,
    is_fed: bool = False,
) -> Iterator[base.Case]:
    """A monitored session, made by `make`, that stays open over all repeats.

    Batches come from a dataset, or are fed as numpy arrays.
    """
    with tf.Graph().as_default():
        batch: Any = None
        if is_fed:
            images = v1.placeholder(tf.float32, [None, SIZES[0]])
            batch = images, v1.placeholder(tf.int64, [None])
        fetches = [*graph_step(work, batch)]
        with make(hooks=hooks, log_step_count_steps=None) as session:

            def fed() -> base.Sample:
                batches = iter(work.batches())

                def step() -> float:
                    feeds = dict(zip(batch, next(batches), strict=True))
                    return float(session.run(fetches, feeds)[1])

                return timed_epoch(work, step)

            def not_fed() -> base.Sample:
                return timed_epoch(work, lambda: session.run(fetches)[1])

            yield base.Case(name, fed if is_fed else not_fed)


@contextlib.contextmanager
def callable_case(work: Work) -> Iterator[base.Case]:
    """The floor of a session loop: no hooks, no feeds, no fetch handling."""
    with tf.Graph().as_default():
        train_op, loss = graph_step(work)
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            step = session.make_callable([train_op, loss])
            yield base.Case(
                "Session.make_callable", lambda: timed_epoch(work, lambda: step()[1])
            )


def check_guests(kept: list[list[Any]], work: Work) -> None:
    """Checks that every guest saw every step, and that all saw the same losses."""
    means = {}
    for guests in kept:
        for i, guest in enumerate(guests):
            epochs = np.reshape(guest.losses, [-1, work.steps])
            last = epochs[-1]
            name = f"{type(guest).__name__} {i + 1} of {len(guests)}"
            # A callback's loss is already the mean of the epoch so far.
            is_hook = isinstance(guest, LossHook)
            means[name] = float(last.mean() if is_hook else last[-1])
    base.check_losses(means)
