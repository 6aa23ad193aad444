"""A lost session: callbacks go on in the next one as after a kill and a restart."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import tensorflow as tf
from callback_loops import until_stop
from callback_recorder import callback_of
from hook_fetching import hook_of

import hookbridge as hb

ONE_KERAS = True

v1: Any = tf.compat.v1


class Case(NamedTuple):
    """When a session is lost, and what it has saved by then."""

    save_every: int | None  # None without checkpoints
    lost_in: int  # a run of the train op; an epoch has three


# By the step of the newest checkpoint.
CASES = {
    "first step of the epoch": Case(3, 5),
    "first step of the epoch that begins": Case(3, 4),
    "within the epoch": Case(2, 6),
    "within the epoch before": Case(2, 4),
    "step 0": Case(99, 2),
    "step 0, an epoch later": Case(99, 5),
    "none": Case(None, 8),
    "none, in the first run": Case(None, 1),
}
GUESTS = {
    "scheduler": lambda c: c.LearningRateScheduler(lambda epoch, now: now * 0.5),
    "plateau": lambda c: c.ReduceLROnPlateau(
        "loss", factor=0.5, patience=1, min_delta=99.0
    ),
}
ROWS = list(itertools.product(CASES, ("fed", "variable"), GUESTS))
SAMPLE = [
    ("first step of the epoch", "variable", "scheduler"),
    ("within the epoch", "fed", "scheduler"),
    ("step 0, an epoch later", "fed", "plateau"),
    ("none", "fed", "scheduler"),
    ("none", "variable", "plateau"),
]
MARKS: dict[bool, Any] = {True: (), False: pytest.mark.exhaustive}
TABLE = [pytest.param(*row, marks=MARKS[row in SAMPLE]) for row in ROWS]


class Outcome(NamedTuple):
    """What one process had since it began, or since it lost its session."""

    events: list[tuple[Any, ...]]  # with number, learning rate, history
    weight: float
    counted: int  # by an attribute of a callback


def lose(at: int, error: BaseException, events: list[Any]) -> Any:
    """Raises in one run of the train op; what came before it does not count."""
    runs = itertools.count(1)

    def before_run(self: Any, context: Any) -> None:
        if next(runs) == at:
            events.clear()
            raise error

    return hook_of(before_run=before_run)


def counting(keras: Any, events: list[Any], *, sets_weight: bool) -> Any:
    """Writes events down, and counts them in an attribute."""

    def note(self: Any, kind: str, number: int) -> None:
        self.counted += 1
        rate = float(np.asarray(self.model.optimizer.learning_rate))
        told = list(self.model.history.epoch)
        events.append((kind, number, round(rate, 6), told))

    def set_weight(self: Any, logs: Any = None) -> None:
        if sets_weight:
            self.model.trainable_weights[0].assign(3.0)

    callback = callback_of(
        keras,
        on_train_begin=set_weight,
        on_epoch_begin=lambda self, epoch, logs: note(self, "begin", epoch),
        on_train_batch_end=lambda self, batch, logs: note(self, "batch", batch),
        on_epoch_end=lambda self, epoch, logs: note(self, "end", epoch),
    )
    callback.counted = 0
    return callback


def train(
    keras: Any,
    folder: Path,
    case: Case,
    kind: str,
    guest: str,
    error: BaseException | None = None,
) -> Outcome:
    """Trains as a new process would; an `error` comes in the run of the case."""
    events: list[Any] = []
    counts = counting(keras, events, sets_weight=case.save_every is None)
    weights: list[float] = []
    with tf.Graph().as_default():
        weight = v1.get_variable("weight", initializer=2.0)
        rate = v1.get_variable("rate", initializer=0.1, trainable=False)
        loss, step = weight**2, v1.train.get_or_create_global_step()
        optimizer = v1.train.GradientDescentOptimizer(0.1 if kind == "fed" else rate)
        train_op = optimizer.minimize(loss, step)
        hooks = hb.as_hooks(
            [GUESTS[guest](keras.callbacks), counts],
            steps_per_epoch=3,
            epochs=4,
            logs={"loss": loss},
        )
        last = hook_of(end=lambda _, session: weights.append(session.run(weight)))
        lost = [] if error is None else [lose(case.lost_in, error, events)]
        until_stop(
            [*hooks, last, *lost],
            train_op,
            checkpoint_dir=None if case.save_every is None else str(folder),
            save_checkpoint_steps=case.save_every,
        )
    return Outcome(events, float(weights[-1]), counts.counted)


@pytest.mark.parametrize(("name", "kind", "guest"), TABLE)
def test_a_recovery_is_like_a_kill_and_a_restart(
    keras: Any, name: str, kind: str, guest: str, tmp_path: Path
) -> None:
    case = CASES[name]
    with pytest.raises(KeyboardInterrupt):
        train(keras, tmp_path / "killed", case, kind, guest, KeyboardInterrupt())
    restarted = train(keras, tmp_path / "killed", case, kind, guest)
    lost = tf.errors.AbortedError(None, None, "lost a server")
    recovered = train(keras, tmp_path / "lost", case, kind, guest, lost)
    assert recovered == restarted
    whole = train(keras, tmp_path / "whole", case, kind, guest)
    assert recovered.weight == pytest.approx(whole.weight)
    assert recovered.counted == whole.counted


def test_a_begin_that_was_lost_comes_again(
    keras: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The session is lost as a callback reads a weight in `on_train_begin`."""
    begun: list[str] = []

    def lose_session(self: Any, *args: Any, **options: Any) -> Any:
        monkeypatch.undo()
        raise tf.errors.AbortedError(None, None, "lost a server")

    def read(self: Any, logs: Any = None) -> None:
        begun.append("reads")
        if self.counted == 0:
            self.model.optimizer.learning_rate = 0.5  # does not outlive the session
            if len(begun) == 2:
                monkeypatch.setattr(v1.Session, "run", lose_session)
            self.counted += 1
        float(self.model.trainable_weights[0])

    reads = callback_of(keras, on_train_begin=read)
    reads.counted = 0
    rates: list[float] = []
    guests = [
        callback_of(keras, on_train_begin=lambda self, logs: begun.append("first")),
        reads,
        callback_of(
            keras,
            on_train_begin=lambda self, logs: begun.append("last"),
            on_train_batch_end=lambda self, batch, logs: rates.append(
                float(np.asarray(self.model.optimizer.learning_rate))
            ),
        ),
        keras.callbacks.CSVLogger(str(tmp_path / "log.csv")),
    ]
    for folder in (None, str(tmp_path)):
        begun.clear()
        rates.clear()
        reads.counted = 0
        with tf.Graph().as_default():
            weight = v1.get_variable("weight", initializer=2.0)
            step = v1.train.get_or_create_global_step()
            rate = v1.get_variable("rate", initializer=0.1, trainable=False)
            optimizer = v1.train.GradientDescentOptimizer(rate)
            train_op = optimizer.minimize(weight**2, step)
            hooks = hb.as_hooks(guests, steps_per_epoch=1, epochs=2)
            assert until_stop(hooks, train_op, checkpoint_dir=folder) == 2
        assert begun == ["first", "reads", "first", "reads", "last"]
        assert rates == pytest.approx([0.5, 0.5])
        assert len((tmp_path / "log.csv").read_text().split()) == 3
        assert reads.counted == 1
