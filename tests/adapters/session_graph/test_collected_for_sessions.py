"""What programs put into the collections that TensorFlow's `Scaffold` reads.

Each program trains four steps natively, with a callback and with a recorder: it ends
alike, with the same weight, the same files and the same ops of its own run.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import tensorflow as tf
from callback_recorder import step_events

import hookbridge as hb

ONE_KERAS = True

v1: Any = tf.compat.v1
KEYS = v1.GraphKeys
Entries = list[Any]


class End(NamedTuple):
    """How a program ends."""

    error: str
    weight: float
    runs: int  # how often the op of the program's own has run
    files: list[str]


def initialize(runs: Any) -> Any:
    """Initializes all variables, and then counts; a tensor."""
    with tf.control_dependencies([v1.global_variables_initializer()]):
        return v1.assign_add(runs, 1)


def no_missing(runs: Any) -> Any:
    return v1.report_uninitialized_variables()


FORMS: dict[str, Callable[[Any], Entries]] = {
    "an op": lambda tensor: [tensor.op],
    "a tensor": lambda tensor: [tensor],
    "twice": lambda tensor: [tensor, tensor],
    "None": lambda tensor: [None],
    "None before it": lambda tensor: [None, tensor],
    "a name": lambda tensor: [tensor.name],
}
SAVERS: dict[str, Callable[[], Entries]] = {
    "one": lambda: [v1.train.Saver()],
    "twice": lambda: [v1.train.Saver()] * 2,
    "two": lambda: [v1.train.Saver(), v1.train.Saver()],
    "None": lambda: [None],
    "None after it": lambda: [v1.train.Saver(), None],
    "a number": lambda: [3],
}
SUMMARIES: dict[str, Callable[[], Entries]] = {
    "a summary": lambda: [v1.summary.scalar("a", 1.0)],
    "its op": lambda: [v1.summary.scalar("a", 1.0).op],
    "twice": lambda: [v1.summary.scalar("a", 1.0)] * 2,
    "a text": lambda: [b"text"],
    "None": lambda: [None],
    "a number": lambda: [tf.constant(1.0)],
}


def counted(runs: Any) -> Any:
    return v1.assign_add(runs, 1)


def _forms(key: str, make: Callable[[Any], Any]) -> dict[str, Any]:
    return {
        f"{key}: {form}": (key, lambda runs, f=form: FORMS[f](make(runs)))
        for form in FORMS
    }


def _others(key: str, entries: dict[str, Callable[[], Entries]]) -> dict[str, Any]:
    return {
        f"{key}: {form}": (key, lambda runs, m=make: m())
        for form, make in entries.items()
    }


PROGRAMS: dict[str, tuple[str, Callable[[Any], Entries]]] = {
    **_forms(KEYS.INIT_OP, initialize),
    **_forms(KEYS.LOCAL_INIT_OP, counted),
    **_forms(KEYS.READY_OP, no_missing),
    **_forms(KEYS.READY_FOR_LOCAL_INIT_OP, no_missing),
    **_forms(KEYS.TABLE_INITIALIZERS, counted),
    **_others(KEYS.SAVERS, SAVERS),
    **_others(KEYS.SUMMARY_OP, SUMMARIES),
    **_others(KEYS.SUMMARIES, SUMMARIES),
}
SAMPLE = ("init_op: a tensor", "savers: twice", "summary_op: None", "summaries: its op")


def end_of(name: str, folder: Path, guests: list[Any] | None) -> End:
    """Trains in a session that saves and writes summaries."""
    error, weight, count = "", 0.0, 0
    with tf.Graph().as_default():
        w = v1.get_variable("w", initializer=1.0)
        runs = v1.get_variable("runs", initializer=0, trainable=False)
        loss = tf.identity(tf.square(w), name="loss")
        step = v1.train.get_or_create_global_step()
        train_op = v1.train.GradientDescentOptimizer(0.1).minimize(loss, step)
        key, entries = PROGRAMS[name]
        for entry in entries(runs):
            v1.add_to_collection(key, entry)
        try:
            hooks = [] if guests is None else hb.as_hooks(guests, steps_per_epoch=2)
            with v1.train.MonitoredTrainingSession(
                checkpoint_dir=str(folder),
                hooks=hooks,
                save_checkpoint_steps=2,
                save_summaries_steps=1,
                log_step_count_steps=None,
                max_wait_secs=1,
            ) as session:
                for _ in range(4):
                    session.run(train_op)
                weight, count = session.run([w, runs])
        except Exception as e:
            error = f"{type(e).__name__}: {str(e)[:60]}"
    files = sorted(
        path.name
        for path in folder.rglob("*")
        if "events" not in path.name and ".hookbridge" not in path.name
    )
    return End(error, float(weight), int(count), files)


def check(name: str, keras: Any, folder: Path) -> None:
    native = end_of(name, folder / "native", None)
    log: list[str] = []
    assert end_of(name, folder / "callback", [step_events(keras, log)]) == native
    assert native.error or log[-1] == "epoch end 1 at 4"
    recorder = hb.recorder(folder / "recording")
    assert end_of(name, folder / "recorded", [recorder]) == native


@pytest.mark.parametrize("name", SAMPLE)
def test_a_sample(name: str, keras: Any, tmp_path: Path) -> None:
    check(name, keras, tmp_path)


@pytest.mark.exhaustive
def test_all(keras: Any, tmp_path: Path, subtests: pytest.Subtests) -> None:
    for number, name in enumerate(PROGRAMS):
        with subtests.test(name):
            check(name, keras, tmp_path / str(number))
