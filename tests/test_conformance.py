"""Guests in the other loop see exactly what `lifecycle.expected_events` says."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from callback_recorder import callback_of
from hook_fetching import sequential

import hookbridge as hb
from hookbridge.ground.lifecycle import Ending
from hookbridge.testing import (
    EventLog,
    RecordingCallback,
    RecordingHook,
    assert_conforms,
)

v1: Any = tf.compat.v1
X, Y = np.ones((24, 4), "float32"), np.ones((24, 1), "float32")

# Arguments of `fit` beside data and batch size 4 (6 steps an epoch), arguments of
# `compile`, and the facts of the run for `expected_events`.
FIT: list[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = [
    ({}, {}, {"steps": 6}),
    ({"epochs": 3}, {}, {"steps": 18}),
    ({"epochs": 3, "initial_epoch": 2}, {}, {"steps": 6, "first_step": 12}),
    (
        {"validation_data": (X, Y), "validation_batch_size": 12, "epochs": 2},
        {},
        {"steps": 12, "validation_batches": 2},
    ),
    ({"class_weight": {0: 1.0, 1: 2.0}}, {}, {"steps": 6}),
    ({}, {"steps_per_execution": 3}, {"steps": 6, "steps_per_execution": 3}),
]


def check(log: EventLog, **facts: Any) -> None:
    """Compares what the guests of a loop of Keras have seen; their names begin so."""
    for name in log.guests():
        guest = "hook" if name.startswith("hook") else "callback"
        assert_conforms(log, name, guest=guest, host="fit", **facts)  # type: ignore[arg-type]


def test_hook_in_fit(subtests: pytest.Subtests, keras: Any) -> None:
    """The same guests in one `fit` after the other."""
    model, log = sequential(keras), EventLog()
    guests = [
        RecordingHook(log, "hook"),
        RecordingHook(log, "hook that fetches", fetches="loss:0"),
        RecordingCallback(log, "callback"),
    ]
    callbacks = hb.as_callbacks(guests)
    for fit_args, compile_args, facts in FIT:
        with subtests.test(str(fit_args)):
            log.clear()
            made = sequential(keras, **compile_args) if compile_args else model
            made.fit(X, Y, batch_size=4, verbose=0, callbacks=callbacks, **fit_args)
            assert len(log.guests()) == 3
            check(log, steps_per_epoch=6, **facts)
    for mode in ("evaluate", "predict"):
        with subtests.test(str(mode)):
            log.clear()
            callbacks = hb.as_callbacks([guests[0], guests[2]])
            data = (X, Y) if mode == "evaluate" else (X,)
            getattr(model, mode)(*data, batch_size=4, verbose=0, callbacks=callbacks)
            assert len(log.guests()) == 2
            check(log, steps=6, mode=mode)


def test_hooks_begin_right_before_the_first_step(keras: Any) -> None:
    """When the step has been traced: its loss is there. They end at their places."""
    log = EventLog()

    def loss() -> Any:
        return v1.get_default_graph().get_tensor_by_name("loss:0")

    only = ("on_train_batch_begin", "on_train_batch_end", "on_train_end")
    guests = [
        RecordingHook(log, "a", fetches=loss),
        RecordingCallback(log, "callback", only=only),
        RecordingHook(log, "b", fetches=loss),
    ]
    callbacks = hb.as_callbacks(guests)
    sequential(keras).fit(X, Y, batch_size=12, verbose=0, callbacks=callbacks)

    def of_both(*names: str) -> list[tuple[str, str]]:
        return [(hook, name) for name in names for hook in "ab"]

    begin, end = (("callback", f"on_train_batch_{name}") for name in ("begin", "end"))
    run = of_both("before_run", "after_run")
    assert [(e.guest, e.event) for e in log] == [
        *(begin, *of_both("begin", "after_create_session"), *run, end),
        *(begin, *run, end),
        *(("a", "end"), ("callback", "on_train_end"), ("b", "end")),
    ]


def test_a_stop_and_an_error_in_fit(keras: Any) -> None:
    model, options = sequential(keras), {"batch_size": 4, "epochs": 2, "verbose": 0}
    for stopping in (True, False):
        log = EventLog()
        guests = [
            RecordingHook(log, "hook", stop_after_runs=4 if stopping else None),
            RecordingCallback(
                log, "callback", stop_in=None if stopping else ("on_train_batch_end", 4)
            ),
        ]
        model.fit(X, Y, callbacks=hb.as_callbacks(guests), **options)
        check(log, steps=4, steps_per_epoch=6)
    log = EventLog()
    failing = callback_of(
        keras, on_train_batch_end=lambda self, batch, logs: 1 // (2 - batch)
    )
    with pytest.raises(ZeroDivisionError):
        callbacks = hb.as_callbacks([RecordingHook(log, "hook"), failing])
        model.fit(X, Y, callbacks=callbacks, **options)
    check(log, steps=3, ending="error_between_steps")


@pytest.mark.parametrize("batches", [8, 6])
def test_end_of_data_in_fit(keras: Any, batches: int) -> None:
    log = EventLog()
    guests = [RecordingCallback(log, "callback"), RecordingHook(log, "hook")]
    data = tf.data.Dataset.from_tensor_slices((X, Y)).batch(1).take(batches)
    sequential(keras).fit(
        data.filter(lambda x, y: True),  # makes the size of the dataset unknown
        steps_per_epoch=3,
        epochs=3,  # data ends in the last; for a fourth, Keras 3 would restart it
        verbose=0,
        callbacks=hb.as_callbacks(guests),
    )
    facts: dict[str, Any] = {"steps": batches, "ending": "end_of_data"}
    assert_conforms(log, "hook", guest="hook", host="fit", **facts)
    facts["steps_per_epoch"] = 3
    assert_conforms(log, "callback", guest="callback", host="fit", **facts)


def run_session(
    hooks: list[Any],
    *,
    data_steps: int | None = None,
    user_code: Callable[[Any, int], None] = lambda session, run: None,
) -> None:
    """Trains `w` for 7 steps, or until the data ends."""
    with tf.Graph().as_default():
        data = tf.data.Dataset.from_tensors(np.float32(1.0)).repeat(data_steps)
        value = v1.data.make_one_shot_iterator(data).get_next()
        weight = v1.get_variable("w", [], initializer=v1.zeros_initializer())
        loss = tf.square(weight - value, name="loss")
        v1.losses.add_loss(loss)
        step = v1.train.get_or_create_global_step()
        train_op = v1.train.GradientDescentOptimizer(0.1).minimize(loss, step)
        tf.constant(1.0, name="other")
        last = v1.train.StopAtStepHook(num_steps=7)
        with v1.train.MonitoredTrainingSession(hooks=[*hooks, last]) as session:
            run = 0
            while not session.should_stop():
                run += 1
                user_code(session, run)
                session.run(train_op)


def check_session(
    steps: int,
    ending: Ending = "clean",
    *,
    stop_in: tuple[str, int] | None = None,
    runs: int | None = None,
    **options: Any,
) -> None:
    """A session with a callback and a hook; the hook sees each of the `runs`."""
    log = EventLog()
    callback = RecordingCallback(log, "callback", stop_in=stop_in)
    hooks = hb.as_hooks([callback, RecordingHook(log, "hook")], steps_per_epoch=3)
    with contextlib.suppress(ValueError):
        run_session(hooks, **options)
    facts: dict[str, Any] = {"host": "session", "ending": ending}
    own: dict[str, Any] = {"steps": steps, "steps_per_epoch": 3}
    assert_conforms(log, "callback", guest="callback", **own, **facts)
    assert_conforms(log, "hook", guest="hook", steps=runs or steps, **facts)


def test_events_of_a_session() -> None:
    def fail(session: Any, run: int) -> None:
        if run == 5:
            raise ValueError("stop here")

    check_session(7)  # with a partial epoch
    # Runs that are no steps are none for callbacks.
    check_session(7, runs=14, user_code=lambda session, run: session.run("other:0"))
    check_session(4, stop_in=("on_train_batch_end", 4))
    check_session(4, "end_of_data", data_steps=4)
    check_session(6, "end_of_data", data_steps=6)
    check_session(4, "error_between_steps", user_code=fail)
