"""`hb.profile` counts and times the calls of each guest, in either loop."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf
from ramps import fit_ramp, session_ramp

import hookbridge as hb
from hookbridge.insight.guest_profile import BRIDGE, WAITING, Profile
from hookbridge.insight.timings import Timings, as_table, costs

v1 = tf.compat.v1


class Hook(v1.train.SessionRunHook):  # type: ignore[misc, name-defined]
    """Acts in each run, and sleeps before it."""

    def before_run(self, run_context: Any) -> Any:
        time.sleep(0.001)
        return v1.train.SessionRunArgs("loss:0")

    def after_run(self, run_context: Any, run_values: Any) -> None:
        assert run_values.results <= 0


class Epochs(tf.keras.callbacks.Callback):  # type: ignore[misc]
    """Acts by epoch and leaves batches alone."""

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        assert logs["loss"] <= 0


class Batches(tf.keras.callbacks.Callback):  # type: ignore[misc]
    """Acts in each batch."""

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        assert logs["loss"] <= 0


def guests() -> list[Any]:
    return [Hook(), Hook(), Epochs(), Batches()]


def fit(given: list[Any]) -> None:
    fit_ramp(tf.keras, given)


def counts(profile: Profile) -> dict[tuple[str, str], int]:
    return {(row.guest, row.event): row.calls for row in profile.timings.rows}


STEPS = 6  # two epochs of the ramp
OURS = (BRIDGE, WAITING)
EXPECTED = {
    ("Hook", "before_run"): STEPS,
    ("Hook", "after_run"): STEPS,
    ("Hook 2", "before_run"): STEPS,
    ("Hook 2", "after_run"): STEPS,
    ("Epochs", "set_model"): 1,
    ("Epochs", "set_params"): 1,
    ("Epochs", "on_epoch_end"): 2,
    ("Batches", "set_model"): 1,
    ("Batches", "set_params"): 1,
    ("Batches", "on_train_batch_end"): STEPS,
}


@pytest.mark.parametrize("loop", [session_ramp, fit])
def test_calls_of_every_guest(loop: Any, tmp_path: Path) -> None:
    given = guests()
    with hb.profile(given) as profile:
        loop(given)
    found = counts(profile)
    assert {key: n for key, n in found.items() if key[0] not in OURS} == EXPECTED
    assert profile.timings.steps == STEPS
    # The bridge works only for guests of the other loop.
    bridged = {event: n for (name, event), n in found.items() if name == BRIDGE}
    if loop is session_ramp:
        assert bridged["before_run"] == 2 * STEPS  # two wrapped callbacks
    else:
        assert bridged["step"] == STEPS
    first = profile.timings.rows[0]
    rows = {row[:2]: row for row in profile.timings.rows}
    hook = rows["Hook", "before_run"]
    assert hook.seconds >= 0.001 * STEPS
    assert first.seconds >= hook.seconds
    in_bridge = sum(row.seconds for row in profile.timings.rows if row.guest == BRIDGE)
    everything = profile.timings.step_seconds
    assert everything is not None and everything >= 0.002
    assert in_bridge > 0
    assert hook.share is not None and 0 < hook.share < 1

    text = str(profile)
    assert text.splitlines()[0].split()[:3] == ["guest", "event", "calls"]
    assert f"{STEPS} steps of " in text
    assert len(text.splitlines()) == len(found) + 3  # and the first calls

    profile.save(tmp_path / "board")
    stored = json.loads((tmp_path / "board" / "guests.profile.json").read_text())
    assert stored["steps"] == STEPS
    assert {(r["guest"], r["event"]): r["calls"] for r in stored["rows"]} == found
    trace = json.loads((tmp_path / "board" / "guests.trace.json").read_text())
    calls = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    assert len(calls) == sum(found.values())
    names = [e["args"]["name"] for e in trace["traceEvents"] if e["ph"] == "M"]
    assert sorted(names) == sorted({name for name, _ in found})

    # The guests have their own methods back.
    for guest in given:
        assert not {event for _, event in found} & vars(guest).keys()
    loop(given)
    assert counts(profile) == found


def test_guests_that_are_converted_already() -> None:
    given = guests()
    hooks = hb.as_hooks(given, steps_per_epoch=3, logs={"loss": "loss:0"})
    with hb.profile(hooks) as profile:
        session_ramp(hooks)
    found = {k: n for k, n in counts(profile).items() if k[0] not in OURS}
    assert found == EXPECTED
    assert counts(profile)[BRIDGE, "after_run"] == 2 * STEPS


def test_method_that_a_guest_replaces_in_a_proxy(keras: Any, keras2: Any) -> None:
    """If Keras 2 is in the process too, a Keras 3 callback is called by a proxy."""

    class Changes(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            self.__dict__["on_train_batch_end"] = lambda batch, logs=None: later.append(
                1
            )

    later: list[int] = []
    guest = Changes()
    with hb.profile(guest) as profile:
        fit([guest])
    assert len(later) == STEPS - 1
    assert counts(profile)["Changes", "on_train_batch_end"] == 1


def test_second_fit_of_one_profile() -> None:
    hook = Hook()
    with hb.profile(hook) as profile:
        fit([hook])
        fit([hook])
    assert counts(profile)["Hook", "before_run"] == 2 * STEPS
    assert counts(profile)[BRIDGE, "step"] == 2 * STEPS


def test_time_within_another_call_counts_once() -> None:
    timings = Timings(iter([0.0, 1.0, 2.0, 5.0, 8.0]).__next__)
    timings.enter()  # at second 1
    timings.enter()
    timings.leave("inner", "on_test_begin")
    timings.leave("outer", "on_epoch_end")
    assert [row[:4] for row in timings.rows] == [
        ("outer", "on_epoch_end", 1, 4.0),
        ("inner", "on_test_begin", 1, 3.0),
    ]
    assert timings.rows[0].share is None  # there was no step


def test_share_of_the_step() -> None:
    times = [0.0]  # the first step takes long
    for begin in (0.0, 100.0, 110.0, 120.0):
        times += [begin, begin + 2]
    timings = Timings(iter(times).__next__)
    for _ in range(4):
        timings.enter()
        timings.leave("Hook", "before_run")
    assert timings.steps == 4
    assert timings.step_seconds == 10
    assert timings.rows[0].share == pytest.approx(0.2)
    assert "20.0%" in as_table(timings.as_dict())


def test_first_calls_are_a_row_of_the_table() -> None:
    times = [0.0]  # the first call takes 90 s, each later one 2 s of 10
    for begin, end in ((0, 90), (100, 102), (110, 112), (120, 122)):
        times += [float(begin), float(end)]
    timings = Timings(iter(times).__next__)
    for _ in range(4):
        timings.enter()
        timings.leave("Hook", "before_run")
    first, later = costs(timings.as_dict())
    assert first == ("first calls", "(build graphs)", 1, 90.0, None)
    assert later[:4] == ("Hook", "before_run", 3, 6.0)
    # Microseconds and percent agree: a call is its share of the average step.
    step, share = timings.step_seconds, later.share
    assert step is not None and share is not None
    assert share == pytest.approx(0.2)
    assert later.seconds / later.calls == pytest.approx(share * step)


def test_shares_of_late_calls_are_at_most_all() -> None:
    times = [0.0]
    for begin, end in ((0, 1), (10, 11), (20, 21), (21, 81), (81, 181)):
        times += [float(begin), float(end)]
    timings = Timings(iter(times).__next__)
    for event in (*["before_run"] * 3, "on_epoch_end", "on_epoch_end"):
        timings.enter()
        timings.leave("Guest", event)
    shares = [row.share or 0.0 for row in timings.rows]
    assert shares == pytest.approx([100 / 171, 2 / 171])


def test_what_is_no_guest_is_refused() -> None:
    with pytest.raises(hb.errors.NotAGuestError):
        hb.profile([object()])
