"""Session loops give callbacks what `fit`, `evaluate` and `predict` give them.

`tests/traces/fit_scenarios.md` says why some scenarios differ.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from callback_loops import (
    BATCH,
    STEPS,
    X,
    Y,
    build,
    feeds,
    fit,
    fresh_model,
    session_loop,
    until_stop,
)
from callback_recorder import EVENTS, recorder
from classification import IS_NEWEST
from hook_fetching import hook_of

import hookbridge as hb
from hookbridge.ground import compat

v1: Any = tf.compat.v1
Events = list[list[Any]]
ERRORS: dict[str, Callable[[], BaseException]] = {
    "valueerror": ValueError,
    "stopiteration": StopIteration,
    "keyboardinterrupt": KeyboardInterrupt,
    "outofrange": lambda: tf.errors.OutOfRangeError(None, None, "q"),
}
OF_FIT = [e for e in EVENTS if "test" not in e]
ENDS = {"stopiteration": "StopIteration", "outofrange": "OutOfRangeError: q"}
# A session raises another error, which it does not take for the end of its data.
END_OF_DATA_IN = [f"{error}_in_{event}" for error in ENDS for event in OF_FIT]
GUEST_FAILED = (
    "`Functions.{event}` raised {error}. A session would take that for the end of the "
    "training data and end as if all was well."
)
SCENARIOS = [
    *("normal", "validation", "evaluate", "predict"),
    *("steps_per_execution", "initial_epoch"),
    *("dataset_too_short", "dataset_unknown_size"),
    *(f"stop_in_{event}" for event in OF_FIT if event != "on_train_end"),
    *(f"{error}_in_{event}" for error in ERRORS for event in OF_FIT),
    *(f"stop_in_{event}" for event in ("on_test_begin", "on_test_batch_end")),
    *(f"keyboardinterrupt_in_{e}" for e in ("on_test_batch_begin", "on_test_end")),
]


class Run:
    """The guests of a scenario, and what they see in one of the loops."""

    def __init__(self, keras: Any, scenario: str) -> None:
        self.keras, self.scenario = keras, scenario
        self.epochs = 3 if scenario == "dataset_too_short" else 2
        self.validates = scenario == "validation" or "on_test" in scenario
        self.log: Events = []
        self.values: list[float] = []
        kind, _, event = scenario.partition("_in_")
        acts: dict[str, Any] = {"stop_in": event} if kind == "stop" else {}
        if kind in ERRORS:
            acts = {"raise_in": event, "error": ERRORS[kind]}
        self.guests = [
            recorder(keras, self.log, "A", values=self.values),
            recorder(keras, self.log, "X", **acts),
            recorder(keras, self.log, "B"),
        ]

    def go(
        self, loop: Callable[[Run], dict[str, Any]], steps: Callable[[], int]
    ) -> None:
        """Runs a loop, which returns the history, and writes down how it ended."""
        try:
            history = loop(self)
        except BaseException as error:
            message = str(error).split("\n")[0][:120]
            self.log.append(["ESCAPED", type(error).__name__, message])
        else:
            losses = len(history.get("loss", []))
            self.log.append(["RETURNED", losses, sorted(history)])
        self.log.append(["AFTER", bool(self.guests[0].model.stop_training), steps()])


def in_keras(keras: Any, scenario: str) -> Run:
    """Runs a scenario in `fit`, `evaluate` or `predict`."""
    run = Run(keras, scenario)
    each = 3 if scenario == "steps_per_execution" else 1
    model = fresh_model(keras, steps_per_execution=each)

    def loop(run: Run) -> dict[str, Any]:
        options: dict[str, Any]
        if scenario in ("evaluate", "predict"):
            data = (X, Y)[: 1 + (scenario == "evaluate")]
            options = {"batch_size": BATCH, "verbose": 0, "callbacks": run.guests}
            getattr(model, scenario)(*data, **options)
            return {}
        if scenario == "initial_epoch":
            fit(keras, [], epochs=1, validate=False, model=model)
        options = {"epochs": run.epochs, "validate": run.validates, "model": model}
        return fit(keras, run.guests, **options, **_fit_options(scenario)).history

    run.go(loop, lambda: int(np.asarray(model.optimizer.iterations)))
    return run


def _fit_options(scenario: str) -> dict[str, Any]:
    if scenario == "initial_epoch":
        return {"initial_epoch": 1}
    if not scenario.startswith("dataset"):
        return {}
    batches = tf.data.Dataset.from_tensor_slices((X, Y)).batch(BATCH)
    options = {"x": batches, "y": None, "batch_size": None}
    if scenario == "dataset_too_short":
        return {**options, "steps_per_epoch": STEPS}
    return {**options, "x": batches.filter(lambda x, y: True)}


def in_session(keras: Any, scenario: str, folder: Path) -> Run:
    """Runs a scenario in a `MonitoredTrainingSession`."""
    run = Run(keras, scenario)
    kept: dict[str, Any] = {}
    if scenario == "initial_epoch":
        kept["session_options"] = {"checkpoint_dir": str(folder)}
        with tf.Graph().as_default():
            net = build()
            options = {"checkpoint_dir": str(folder)}
            hooks = [v1.train.StopAtStepHook(STEPS)]
            until_stop(hooks, net.train_op, lambda n: feeds(net, n), **options)
    steps = STEPS if kept else 0

    def count(self: Any, context: Any, values: Any) -> None:
        nonlocal steps
        fetches = context.original_args.fetches
        is_step = getattr(fetches, "name", "").startswith("GradientDescent")
        steps += is_step and (STEPS if scenario == "steps_per_execution" else 1)

    # The first hook, so errors of others hide no run.
    counter = hook_of(after_run=count)

    def loop(run: Run) -> dict[str, Any]:
        if scenario in ("evaluate", "predict"):
            return _test_or_predict(run)
        if scenario == "dataset_unknown_size":
            return _until_the_data_ends(run, counter)
        return session_loop(
            run.guests,
            epochs=run.epochs,
            validate=run.validates,
            optimizer=Thrice if scenario == "steps_per_execution" else None,
            params={"verbose": 0, "epochs": run.epochs, "steps": STEPS},
            wrap=lambda hooks: [counter, *hooks],
            **kept,
        ).history

    run.go(loop, lambda: steps)
    return run


class Thrice(v1.train.GradientDescentOptimizer):  # type: ignore[misc]
    """Its train op takes three steps."""

    def minimize(self, loss: Any, global_step: Any) -> Any:
        train_op = super().minimize(loss, global_step)
        for _ in range(STEPS - 1):
            with tf.control_dependencies([train_op]):
                train_op = super().minimize(loss, global_step)
        return train_op


def _test_or_predict(run: Run) -> dict[str, Any]:
    with tf.Graph().as_default():
        net = build(trains=False)
        fetches = net.x @ net.kernel + net.bias
        if run.scenario == "evaluate":
            step = v1.get_variable("eval_step", initializer=0, trainable=False)
            v1.add_to_collection(v1.GraphKeys.EVAL_STEP, step)
            fetches = step.assign_add(1)
        hooks = hb.as_hooks(
            run.guests,
            logs={"mae": "mae:0"} if run.scenario == "evaluate" else None,
            params={"verbose": 0, "epochs": 1, "steps": STEPS},
        )
        with v1.train.MonitoredTrainingSession(hooks=hooks) as session:
            for step in range(STEPS):
                session.run(fetches, feeds(net, step))
    return {}


def _until_the_data_ends(run: Run, counter: Any) -> dict[str, Any]:
    history = run.keras.callbacks.History()
    with tf.Graph().as_default():
        rows = tf.data.Dataset.from_tensor_slices((X, Y)).batch(BATCH)
        iterator = v1.data.make_initializable_iterator(rows)
        net = build(data=iterator.get_next())
        hooks = hb.as_hooks(
            [*run.guests, history],
            steps_per_epoch=100,  # more than the data has
            logs={"mae": "mae:0"},
            params={"verbose": 0, "epochs": run.epochs, "steps": None},
        )
        with v1.train.MonitoredTrainingSession(hooks=[counter, *hooks]) as session:
            for _ in range(run.epochs):
                session.run(iterator.initializer)
                with contextlib.suppress(tf.errors.OutOfRangeError):
                    while True:
                        session.run(net.train_op)
    return history.history  # type: ignore[no-any-return]


def expected(native: Run) -> Events:
    """The events in a session, from those in Keras."""
    events = native.log
    if native.scenario in END_OF_DATA_IN:
        at = [event[0] for event in events].index("RAISE")
        kind, event = native.scenario.split("_in_")
        message = GUEST_FAILED.format(event=event, error=ENDS[kind])[:120]
        return [
            *events[: at + 1],
            ["ESCAPED", "GuestFailedError", message],
            ["AFTER", False, events[at - 1][3]],
        ]
    if native.scenario == "dataset_unknown_size":
        return list(_without_empty_steps(events, native.keras))
    return events


def _without_empty_steps(events: Events, keras: Any) -> Iterator[list[Any]]:
    """The events of data of unknown size: only training steps are counted."""
    steps = dict.fromkeys("AXB", 0)
    for event in events:
        if event[0] == "AFTER":
            event = [*event[:2], steps["A"]]
        if event[0].startswith("on_"):
            steps[event[1]] += event[0] == "on_train_batch_end"
            event = [*event[:3], steps[event[1]], *event[4:]]
        # Keras 2 knows the size from its second epoch on, and tries no further step.
        knows_size = event[:3] == ["on_epoch_end", "A", 1] and not hasattr(keras, "ops")
        for name in "AXB" if knows_size else "":
            yield ["on_train_batch_begin", name, STEPS, steps["A"], False, [], []]
        yield event


# tf_keras has the source of Keras 2.15, which runs all of them beside TF 2.15.
OF_TF_KERAS = [
    *SCENARIOS[:8],
    *(f"{kind}_in_on_epoch_end" for kind in ("stop", *ERRORS)),
]
# An interrupt goes the way of any error, and the end of the data has one way too.
LIKE_ANOTHER = [
    f"{error}_in_{event}"
    for error in ("keyboardinterrupt", "outofrange")
    for event in OF_FIT
    if event != "on_epoch_end"
]


def rows() -> list[Any]:
    """All scenarios, of which `make test` leaves out those that are like another."""
    cases = []
    for keras, scenarios in (("keras", SCENARIOS), ("tf_keras", OF_TF_KERAS)):
        for scenario in scenarios if IS_NEWEST or keras == "keras" else ():
            is_like = scenario in LIKE_ANOTHER
            is_like |= keras == "tf_keras" and scenario not in OF_TF_KERAS[::4]
            marks = [pytest.mark.exhaustive] * is_like
            cases.append(pytest.param(keras, scenario, marks=marks))
    return cases


@pytest.mark.parametrize(("keras", "scenario"), rows(), indirect=["keras"])
def test_events_are_those_of_keras(keras: Any, scenario: str, tmp_path: Path) -> None:
    assert len(SCENARIOS) == 41
    session = in_session(keras, scenario, tmp_path)
    native = in_keras(keras, scenario)
    # Keras 3.16 does not count the step in which the data ends.
    is_exact = hasattr(keras, "ops") and compat.keras3_version() >= (3, 16)
    differs = scenario in END_OF_DATA_IN
    differs |= scenario == "dataset_unknown_size" and not is_exact
    assert session.log == expected(native)
    assert (session.log != native.log) == differs
    # Logs of a run that takes several steps are those of its last fetch.
    if scenario not in (*END_OF_DATA_IN, "steps_per_execution"):
        np.testing.assert_allclose(session.values, native.values, rtol=2e-5)
