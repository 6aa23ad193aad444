"""The table in the documentation matches the tests."""

from __future__ import annotations

import classification as c
import pytest
import trace_table
from scenarios import SCENARIOS
from trace_events import RECORDED


def test_the_document_is_what_the_tests_classify() -> None:
    assert trace_table.PATH.read_text("utf-8") == trace_table.text(), (
        "run `python tests/traces/trace_table.py`"
    )


def test_every_recorded_scenario_is_in_one_class() -> None:
    named = [*c.MEANINGLESS, *c.DIFFERENCES, *c.SESSION_ONLY]
    assert len(named) == len(set(named))
    assert set(named) <= set(RECORDED)
    assert len(RECORDED) == 111


def test_most_scenarios_are_the_same() -> None:
    assert len(c.with_verdict(c.SAME)) >= 85


def test_every_scenario_with_a_meaning_runs() -> None:
    run = {*c.same_in_fit(), *c.same_in_session(), *c.DIFFERENCES}
    assert run == set(RECORDED) - set(c.MEANINGLESS)
    assert run <= set(SCENARIOS)


@pytest.mark.parametrize("name", [*c.MEANINGLESS, *c.DIFFERENCES, *c.SESSION_ONLY])
def test_every_exception_has_a_reason(name: str) -> None:
    reasons = {**c.MEANINGLESS, **c.SESSION_ONLY}
    reason = reasons.get(name) or c.DIFFERENCES[name].because
    assert len(reason) > 10
