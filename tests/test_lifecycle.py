"""The documented lifecycles agree with recordings of the released loops."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import pytest

from hookbridge import errors
from hookbridge.ground import lifecycle
from hookbridge.ground.lifecycle import expected_events

RECORDED: dict[str, Any] = json.loads(
    (Path(__file__).parent / "data" / "recorded_lifecycles.json").read_text("utf-8")
)
KERAS = [key for key in RECORDED if key.startswith("keras")]
HOOKS = RECORDED["tensorflow 2.15.1"]

# Recorded scenario -> its arguments for `expected_events`.
FIT_SCENARIOS: dict[str, dict[str, Any]] = {
    "normal": {"steps": 4, "steps_per_epoch": 2},
    "validation": {"steps": 2, "steps_per_epoch": 2, "validation_batches": 2},
    "evaluate": {"steps": 2, "mode": "evaluate"},
    "predict": {"steps": 2, "mode": "predict"},
    "steps_per_execution": {"steps": 4, "steps_per_epoch": 4, "steps_per_execution": 2},
    "initial_epoch": {"steps": 2, "steps_per_epoch": 2, "first_step": 2},
    "stop_in_on_train_begin": {"steps": 1, "steps_per_epoch": 2},
    "stop_in_on_epoch_begin": {"steps": 1, "steps_per_epoch": 2},
    "stop_in_on_train_batch_begin": {"steps": 1, "steps_per_epoch": 2},
    "stop_in_on_train_batch_end": {"steps": 1, "steps_per_epoch": 2},
    "stop_in_on_epoch_end": {"steps": 2, "steps_per_epoch": 2},
    "valueerror_in_on_train_batch_end": {
        "steps": 1,
        "steps_per_epoch": 2,
        "ending": "error_between_steps",
    },
}
SESSION_SCENARIOS: dict[str, dict[str, Any]] = {
    "normal": {"steps": 3},
    "zero_runs": {"steps": 0},
    "stop_at_step_num_steps": {"steps": 3},
    "request_stop_in_before_run": {"steps": 2},
    "request_stop_in_after_run": {"steps": 2},
    "out_of_range": {"steps": 3, "ending": "end_of_data"},
    "exception_in_op": {"steps": 2, "ending": "error_in_step"},
    "exception_in_user_code": {"steps": 1, "ending": "error_between_steps"},
    "nan_stop": {"steps": 3},
}


@pytest.mark.parametrize("scenario", FIT_SCENARIOS)
def test_callback_as_recorded(subtests: pytest.Subtests, scenario: str) -> None:
    """In `fit`; a session shows it the same."""
    facts = FIT_SCENARIOS[scenario]
    events = expected_events("callback", "fit", **facts)
    assert events == expected_events("callback", "session", **facts)
    expected = [tuple(e) for e in events if e.event != "set_model"]  # is not recorded
    for keras in KERAS:
        with subtests.test(str(keras)):
            assert [tuple(e) for e in RECORDED[keras][scenario]] == expected, keras


@pytest.mark.parametrize("scenario", SESSION_SCENARIOS)
def test_hook_as_recorded(scenario: str) -> None:
    """In a session; `fit` shows it the same, but for a run without a step."""
    facts = SESSION_SCENARIOS[scenario]
    expected = expected_events("hook", "session", **facts)
    assert HOOKS[scenario] == [e.event for e in expected]
    in_fit = expected_events("hook", "fit", **facts)
    assert in_fit == ([] if scenario == "zero_runs" else expected)


def test_every_recorded_scenario_is_compared() -> None:
    assert all(set(RECORDED[keras]) == set(FIT_SCENARIOS) for keras in KERAS)
    assert set(HOOKS) == set(SESSION_SCENARIOS)


# Facts of a callback in a session -> its last events, but for `on_train_end`.
RUNS: list[tuple[dict[str, Any], str]] = [
    (
        {"steps": 3, "steps_per_epoch": 2, "only": {"on_epoch_begin", "on_epoch_end"}},
        "epoch_begin 0, epoch_end 0, epoch_begin 1, epoch_end 1",
    ),
    (
        {"steps": 2, "steps_per_epoch": 4, "first_step": 6},
        "epoch_begin 1, train_batch_begin 2, train_batch_end 2, train_batch_begin 3, "
        "train_batch_end 3, epoch_end 1",
    ),
    (
        {"steps": 6, "steps_per_epoch": 3, "steps_per_execution": 2}
        | {"only": {"on_train_batch_end"}},
        "train_batch_end 1, train_batch_end 2, train_batch_end 1, train_batch_end 2",
    ),
    (
        {"steps": 2, "steps_per_epoch": 2, "ending": "error_in_step"},
        "epoch_end 0, epoch_begin 1, train_batch_begin 0",
    ),
]


@pytest.mark.parametrize(("facts", "last"), RUNS, ids=[last for _, last in RUNS])
def test_last_epoch(facts: dict[str, Any], last: str) -> None:
    events = expected_events("callback", "session", **facts)
    found = [f"{e.event.removeprefix('on_')} {e.number}" for e in events]
    found = [each for each in found if not each.startswith("train_end")]
    assert found[-last.count(",") - 1 :] == last.split(", ")


def test_a_hook_has_a_run_for_each_execution() -> None:
    facts = {"steps": 6, "steps_per_epoch": 3, "steps_per_execution": 2}
    hook = expected_events("hook", "fit", **facts)  # type: ignore[arg-type]
    assert sum(e.event == "before_run" for e in hook) == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"guest": "hok"}, "Received `guest='hok'`; expected one of hook, callback."),
        ({"host": "ps"}, "Received `host='ps'`; expected one of session, fit."),
        ({"ending": "bad"}, "Received `ending='bad'`; expected one of clean,"),
        ({"mode": "test"}, "Received `mode='test'`; expected one of train, evaluate,"),
        ({"steps": -1}, "Received `steps=-1`; expected an integer of at least 0."),
        (
            {"steps_per_epoch": 0},
            "Received `steps_per_epoch=0`; expected an integer of",
        ),
    ],
)
def test_bad_arguments(arguments: dict[str, Any], message: str) -> None:
    good: dict[str, Any] = {"guest": "hook", "host": "fit", "steps": 1}
    with pytest.raises(errors.InvalidArgumentError) as caught:
        expected_events(**{**good, **arguments})
    assert message in str(caught.value)


def test_events_are_all_methods_of_the_base_classes() -> None:
    import tensorflow as tf

    def methods(cls: type) -> set[str]:
        return {
            name
            for name, _ in inspect.getmembers(cls, inspect.isfunction)
            if not name.startswith("_")
        }

    hook_base = methods(tf.compat.v1.train.SessionRunHook)
    callback_base = methods(tf.keras.callbacks.Callback)
    assert {e.name for e in lifecycle.HOOK_EVENTS} == hook_base
    assert {e.name for e in lifecycle.CALLBACK_EVENTS} == callback_base


def test_every_event_has_a_counterpart_or_a_reason() -> None:
    other = {
        "hook": {e.name for e in lifecycle.CALLBACK_EVENTS},
        "callback": {e.name for e in lifecycle.HOOK_EVENTS},
    }
    for event in lifecycle.EVENTS.values():
        if event.counterpart is None:
            assert event.why_none, event.name
        else:
            assert event.counterpart in other[event.guest], event.name
            assert not event.why_none, event.name
