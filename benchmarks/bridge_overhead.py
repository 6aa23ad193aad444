"""Microseconds per step, native guests against bridged ones, in both loops.

    python benchmarks/bridge_overhead.py --json=overhead.json

Every guest does the same: it keeps the loss of every step. In a session that is a
hook that fetches the loss (native) or a callback that reads `logs["loss"]`
(bridged); in `Model.fit` it is the other way round. 0, 1 and 10 of them run, and
the floors are a `Session.make_callable` loop and a bare `tf.function` loop. A third
table is about the session loop itself: the same native hooks in
`MonitoredTrainingSession` and in `hb.loops.training_session`. All loops train the
same network from the same weights on the same batches.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import os
import statistics
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
import tensorflow as tf

import hookbridge as hb
from benchmarks import base

v1: Any = tf.compat.v1

COUNTS = (0, 1, 10)
BATCH_SIZE = 32
SIZES = (64, 32, 10)
RATE = 0.01


class LossHook(v1.train.SessionRunHook):  # type: ignore[misc]
    """Keeps the loss of every step, as hooks do."""

    def __init__(self) -> None:
        self.losses: list[float] = []

    def before_run(self, run_context: Any) -> Any:
        return v1.train.SessionRunArgs("loss:0")

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self.losses.append(float(run_values.results))


class LossCallback(tf.keras.callbacks.Callback):  # type: ignore[misc]
    """Keeps the loss of every step, as callbacks do: the mean of the epoch so far."""

    def __init__(self) -> None:
        super().__init__()
        self.losses: list[float] = []

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.losses.append(float(logs["loss"]))


class Work:
    """The network, its first weights and `steps` batches, the same for all cases.

    Args:
      steps: steps in one stretch, which is one epoch.
      seed: of weights and data.
    """

    def __init__(self, steps: int, seed: int = 0) -> None:
        random = np.random.default_rng(seed)
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

    @staticmethod
    def loss(x: Any, y: Any, weights: list[Any]) -> Any:
        """Mean cross-entropy of a two-layer network."""
        w1, b1, w2, b2 = weights
        logits = tf.nn.relu(x @ w1 + b1) @ w2 + b2
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits)
        return tf.reduce_mean(losses)


def timed_epoch(work: Work, step: Callable[[], float]) -> base.Sample:
    """Times `work.steps` calls; the losses they return are averaged."""
    losses = []
    start = base.clock()
    for _ in range(work.steps):
        losses.append(step())
    secs = base.clock() - start
    return base.Sample(secs / work.steps, float(np.mean(losses)))


def graph_step(work: Work) -> tuple[Any, Any]:
    """Builds the network in the default graph; the train op and the loss."""
    v1.train.get_or_create_global_step()
    x, y = v1.data.make_one_shot_iterator(work.dataset().repeat()).get_next()
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
) -> Iterator[base.Case]:
    """A monitored session, made by `make`, that stays open over all repeats."""
    with tf.Graph().as_default():
        train_op, loss = graph_step(work)
        with make(hooks=hooks, log_step_count_steps=None) as session:
            yield base.Case(
                name,
                lambda: timed_epoch(work, lambda: session.run([train_op, loss])[1]),
            )


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


def keras_model(work: Work) -> Any:
    """The network as a Keras model with the same first weights."""
    inputs, hidden, outputs = SIZES
    model = tf.keras.Sequential(
        [
            tf.keras.layers.Input([inputs]),
            tf.keras.layers.Dense(hidden, activation="relu"),
            tf.keras.layers.Dense(outputs),
        ]
    )
    model.set_weights(work.weights)
    model.compile(
        optimizer=tf.keras.optimizers.SGD(RATE),
        loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        jit_compile=False,
    )
    return model


class _EpochClock(tf.keras.callbacks.Callback):  # type: ignore[misc]
    """Times one epoch; the one before it builds and traces the step."""

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
    """`Model.fit` of two epochs, of which the second is timed."""
    data = work.dataset()
    model = keras_model(work) if model is None else model

    def run() -> base.Sample:
        clock = _EpochClock()
        history = model.fit(
            data,
            epochs=2,
            shuffle=False,
            verbose=0,
            callbacks=[*callbacks, clock],
        )
        return base.Sample(clock.secs / work.steps, history.history["loss"][-1])

    return base.Case(name, run)


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
        # As `fit_case`: two epochs, the second is timed.
        for _ in range(2):
            iterator = iter(data)
            sample = timed_epoch(work, functools.partial(one_step, iterator))
        return sample

    return base.Case("tf.function", run)


def measure_session(work: Work, repeats: int) -> dict[str, base.Timing]:
    """(a) and the session's floor."""
    with contextlib.ExitStack() as stack:
        cases = [stack.enter_context(callable_case(work))]
        kept: list[list[Any]] = []
        for count in COUNTS:
            hooks = [LossHook() for _ in range(count)]
            callbacks = [LossCallback() for _ in range(count)]
            kept += [hooks, callbacks]
            bridged = hb.as_hooks(callbacks, steps_per_epoch=work.steps)
            for name, guests in (("hooks", hooks), ("callbacks", bridged)):
                cases.append(
                    stack.enter_context(session_case(f"{count} {name}", work, guests))
                )
        timings = base.measure(cases, repeats=repeats)
    check_guests(kept, work)
    return timings


def measure_loops(work: Work, repeats: int) -> dict[str, base.Timing]:
    """Native hooks in TensorFlow's session loop and in ours, and the floor."""
    with contextlib.ExitStack() as stack:
        cases = [stack.enter_context(callable_case(work))]
        kept: list[list[Any]] = []
        for count in COUNTS:
            for loop, make in (
                ("MonitoredTrainingSession", v1.train.MonitoredTrainingSession),
                ("training_session", hb.loops.training_session),
            ):
                hooks = [LossHook() for _ in range(count)]
                kept.append(hooks)
                case = session_case(f"{count} in {loop}", work, hooks, make)
                cases.append(stack.enter_context(case))
        timings = base.measure(cases, repeats=repeats)
    check_guests(kept, work)
    return timings


def measure_fit(work: Work, repeats: int) -> dict[str, base.Timing]:
    """(b) and the floor of `fit`."""
    cases = [function_case(work)]
    kept: list[list[Any]] = []
    for count in COUNTS:
        hooks = [LossHook() for _ in range(count)]
        callbacks = [LossCallback() for _ in range(count)]
        kept += [hooks, callbacks]
        cases += [
            fit_case(f"{count} callbacks", work, callbacks),
            fit_case(f"{count} hooks", work, hb.as_callbacks(hooks)),
        ]
    timings = base.measure(cases, repeats=repeats)
    check_guests(kept, work)
    return timings


def check_guests(kept: list[list[Any]], work: Work) -> None:
    """Every guest saw every step, and all of them the same losses."""
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


def rows_of(
    timings: dict[str, base.Timing], native: str, bridged: str
) -> list[list[str]]:
    """A row for each number of guests: native, bridged and their ratio."""
    rows = []
    for count in COUNTS:
        own, other = timings[f"{count} {native}"], timings[f"{count} {bridged}"]
        rows.append(
            [
                str(count),
                f"{own.microsecs:.0f}",
                f"{other.microsecs:.0f}",
                f"{other.ratio_to(own):.2f}",
            ]
        )
    return rows


def overhead_rows(timings: dict[str, base.Timing]) -> list[list[str]]:
    """A row for each number of hooks: microseconds over the floor, in both loops."""
    floor = timings["Session.make_callable"]
    rows = []
    for count in COUNTS:
        native = timings[f"{count} in MonitoredTrainingSession"].over(floor)
        own = timings[f"{count} in training_session"].over(floor)
        ratios = [a / b for a, b in zip(native, own, strict=True)]
        medians = [statistics.median(values) for values in (native, own, ratios)]
        rows.append([str(count), *(f"{m:.0f}" for m in medians[:2])])
        rows[-1].append(f"{medians[2]:.1f}")
    return rows


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int, default=500, help="steps in a stretch")
    parser.add_argument("--repeats", type=int, default=9, help="stretches timed")
    parser.add_argument(
        "--clock",
        choices=base.CLOCKS,
        default="wall",
        help="`cpu` counts this process's threads only: for a machine in other use",
    )
    parser.add_argument("--json", help="file to write the results to")
    options = parser.parse_args(arguments)
    if options.steps < 1 or options.repeats < 1:
        parser.error("--steps and --repeats have to be 1 or more")

    base.use_clock(options.clock)
    work = Work(options.steps)
    session = measure_session(work, options.repeats)
    loops = measure_loops(work, options.repeats)
    fit = measure_fit(work, options.repeats)
    facts = base.machine()
    print(", ".join(f"{key} {value}" for key, value in facts.items()))
    print(
        f"median of {options.repeats} repeats of {options.steps} steps, "
        f"{options.clock} time\n"
    )
    for title, timings, native, bridged, floor in (
        (
            "MonitoredTrainingSession",
            session,
            "hooks",
            "callbacks",
            "Session.make_callable",
        ),
        ("Model.fit", fit, "callbacks", "hooks", "tf.function"),
    ):
        header = [
            "guests",
            f"native {native}, us/step",
            f"bridged {bridged}, us/step",
            "ratio",
        ]
        print(f"{title} (floor, {floor}: {timings[floor].microsecs:.0f} us/step)\n")
        print(base.markdown(rows_of(timings, native, bridged), header))
    floor_us = loops["Session.make_callable"].microsecs
    print(
        f"Session loops (over the floor, Session.make_callable: {floor_us:.0f} us/step)"
        "\n"
    )
    header = [
        "hooks",
        "MonitoredTrainingSession, us/step over the floor",
        "hb.loops.training_session, us/step over the floor",
        "times less",
    ]
    print(base.markdown(overhead_rows(loops), header))
    if options.json:
        base.write_json(
            options.json,
            {
                "machine": facts,
                "clock": options.clock,
                "steps": options.steps,
                "repeats": options.repeats,
                "session": {k: t._asdict() for k, t in session.items()},
                "loops": {k: t._asdict() for k, t in loops.items()},
                "fit": {k: t._asdict() for k, t in fit.items()},
            },
        )
    return 0


if __name__ == "__main__":
    base.one_thread_per_op()
    sys.exit(main())
