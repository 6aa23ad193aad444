"""The recorded scenarios in `fit` of a v1 graph, a batch for each run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import classification as c
import pytest
from fit_host import FitTrace, in_fit
from scenarios import SCENARIOS
from trace_events import DIFFERENT_EVENTS, RECORDED, Event, comparable

from hookbridge import errors
from hookbridge.adapters.graph_fit.keras_session import KerasSession

_FEED = "a step is fed Keras's learning phase, and hooks see that it is"
# Scenario -> (the key of events that is not as recorded, why).
DIFFERENT = {
    "normal": ("feed", _FEED),
    "options_not_sticky": ("feed", _FEED),
    "exception_in_op": ("msg", "Keras runs a callable, whose errors have no header"),
    "step_counter_summaries": ("tag", "the rate has the name of the optimizer's step"),
}

# Scenarios that need the batch outside of a step: a dataset does not give it there.
OUTSIDE = ("logging_hook_triggers", "final_ops")

# Scenarios that differ in every other `fit`, but not in a v1 graph.
SAME_HERE = ("options_debug_watch_merge",)

NOT_AS_IN_FIT = (*OUTSIDE, *SAME_HERE)
AS_IN_FIT = [name for name in c.DIFFERENT_IN_FIT if name not in NOT_AS_IN_FIT]

# A graph does not order the read of a variable and its update. On a busy machine the
# read may come second.
UNORDERED = ("stale_global_step_fetch",)
TRIES = 5


def run(keras: Any, name: str, root: Path, *, arrays: bool = False) -> list[Event]:
    """The events of one scenario that `fit` has too."""
    trace = FitTrace(
        keras,
        root,
        session_class=KerasSession,
        optimizer=keras.optimizers.legacy.SGD,
        train_op="training/SGD/SGD/AssignAddVariableOp",
        arrays=arrays,
    )
    with trace.run():
        SCENARIOS[name](trace)
    return in_fit(trace.log)


def check_same(keras: Any, name: str, root: Path) -> None:
    recorded, seen = in_fit(RECORDED[name]), run(keras, name, root)
    if name in DIFFERENT:
        key = DIFFERENT[name][0]
        assert [e.get(key) for e in recorded] != [e.get(key) for e in seen]
        for event in (*recorded, *seen):
            event.pop(key, None)
    theirs, ours = comparable(recorded, seen)
    assert ours == theirs


@pytest.mark.slow
@pytest.mark.v1_mode("disable_v2_behavior")
@pytest.mark.parametrize(
    "name", c.with_sample([*c.SAME_IN_FIT, *SAME_HERE], *SAME_HERE)
)
def test_same(name: str, keras2: Any, tmp_path: Path) -> None:
    if name in UNORDERED:
        recorded = in_fit(RECORDED[name])
        assert any(run(keras2, name, tmp_path) == recorded for _ in range(TRIES))
    else:
        check_same(keras2, name, tmp_path)


@pytest.mark.v1_mode("disable_eager_execution")
@pytest.mark.parametrize("name", c.SAMPLE[::2])
def test_same_in_the_second_mode(name: str, keras2: Any, tmp_path: Path) -> None:
    check_same(keras2, name, tmp_path)


@pytest.mark.slow
@pytest.mark.v1_mode("disable_v2_behavior")
@pytest.mark.parametrize("name", c.with_sample(AS_IN_FIT, AS_IN_FIT[0]))
def test_different_as_in_every_fit(name: str, keras2: Any, tmp_path: Path) -> None:
    promised, seen = comparable(
        in_fit(DIFFERENT_EVENTS[name]), run(keras2, name, tmp_path)
    )
    assert seen == promised


@pytest.mark.parametrize("name", OUTSIDE)
def test_the_batch_outside_of_a_step(name: str, keras2: Any, tmp_path: Path) -> None:
    of_arrays, of_dataset = tmp_path / "arrays", tmp_path / "dataset"
    for root in (of_arrays, of_dataset):
        root.mkdir()
    seen = run(keras2, name, of_arrays, arrays=True)
    assert seen == in_fit(RECORDED[name])
    refused = run(keras2, name, of_dataset)[0]
    assert refused["type"] == errors.LiveSessionError.__name__
    assert "which the step computes from a dataset" in refused["msg"]
