"""`hb.record`: the page of a user's own run tells what its guests saw and cost."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf
from ramps import fit_ramp, session_ramp

import hookbridge as hb
from hookbridge.insight import guest_profile
from hookbridge.insight.guest_profile import BRIDGE, WAITING
from hookbridge.insight.report.account import accounts
from hookbridge.insight.report.run_report import Run, cost_rows, cost_summary
from hookbridge.insight.timings import Timings

v1 = tf.compat.v1


def test_both_loops_are_recorded(
    subtests: pytest.Subtests, keras: Any, tmp_path: Path
) -> None:
    found = {}
    for name in ("fit", "session"):
        with subtests.test(str(name)):
            guests = [
                *(v1.train.StopAtStepHook(last_step=step) for step in (6, 20)),
                keras.callbacks.CSVLogger(str(tmp_path / name / "log.csv")),
            ]
            with hb.record(guests, tmp_path / name, title=f"Mine in {name}") as page:
                if name == "fit":
                    fit_ramp(keras, guests)
                else:
                    session_ramp(guests)
            text = page.read_text("utf-8")
            assert f"<title>Mine in {name}</title>" in text
            for anchor in ("curves", "order", "timelines", "events", "costs"):
                assert f'id="{anchor}"' in text, anchor
            (found[name],) = accounts(tmp_path / name)
    for name, account in found.items():
        assert account.guests["StopAtStepHook"].kind == "hook", name
        assert account.counts("StopAtStepHook")["before_run"] == 6
        assert account.counts("CSVLogger")["on_epoch_end"] == 2
        # Guests of one class have rows of their own.
        both = ["StopAtStepHook", "StopAtStepHook 2", "CSVLogger"]
        assert list(account.guests) == both
    # The guests are as they were before.
    assert not {"after_run", "on_epoch_end"} & {k for g in guests for k in vars(g)}


def test_guests_that_are_converted_already(keras: Any, tmp_path: Path) -> None:
    for name in ("fit", "session"):
        found = []
        for is_converted in (False, True):
            stop = v1.train.StopAtStepHook(last_step=6)
            guests: list[Any] = [stop, keras.callbacks.EarlyStopping("loss")]
            if is_converted and name == "fit":
                guests = hb.as_callbacks(guests)
            elif is_converted:
                guests = hb.as_hooks(guests, steps_per_epoch=3, logs={"loss": "loss:0"})
            folder = tmp_path / f"{name}_{is_converted}"
            with hb.record(guests, folder):
                if name == "fit":
                    fit_ramp(keras, guests)
                else:
                    session_ramp(guests)
            (account,) = accounts(folder)
            found.append({g: account.counts(g) for g in account.guests})
        assert found[0] == found[1]
        assert found[0]["StopAtStepHook"]["before_run"] == 6
        assert found[0]["EarlyStopping"]["on_epoch_end"] == 2


def test_a_failed_run_has_a_page_too(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), hb.record([], tmp_path) as page:
        raise ZeroDivisionError
    assert page.exists()


def test_waiting_is_no_work_of_the_bridge(
    keras: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A validation that takes long in TensorFlow is not the bridge's work."""
    now, long = [0.0], 0.5  # by this clock, nothing else takes any time
    timings = functools.partial(Timings, lambda: now[0])
    monkeypatch.setattr(guest_profile, "Timings", timings)

    def slow() -> Any:
        def sleep() -> float:
            now[0] += long
            return 0.0

        with tf.Graph().as_default(), v1.Session() as other:
            return {"loss": float(other.run(tf.py_function(sleep, [], tf.float32)))}

    guests = [keras.callbacks.EarlyStopping("val_loss")]
    with hb.record(guests, tmp_path):
        session_ramp(guests, validation=slow)
    run = Run("session", "Mine", tmp_path, accounts(tmp_path))
    rows = {tuple(row[1:3]): row for row in cost_rows([run], most=100)}
    assert float(rows[WAITING, "run"][4]) >= 1e3 * long
    assert {float(row[4]) for key, row in rows.items() if key[0] == BRIDGE} == {0.0}
    assert "Mine, this process: 6 steps of " in cost_summary(run)


def test_a_page_shows_each_process_by_its_name(tmp_path: Path) -> None:
    for process in ("chief", "worker 0"):
        with hb.record([], tmp_path, process=process) as page:
            pass
    assert {account.process for account in accounts(tmp_path)} == {"chief", "worker 0"}
    text = page.read_text("utf-8")
    assert "chief" in text and "worker 0" in text
