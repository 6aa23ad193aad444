"""Session loops give callbacks the events that were recorded in `Model.fit`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras_recordings as recordings
import pytest
from recorded_loop import replay


@pytest.mark.parametrize("scenario", recordings.SCENARIOS)
def test_events_are_the_recorded_ones(
    keras: Any, scenario: str, tmp_path: Path
) -> None:
    flavour = recordings.flavour_of(keras)
    assert replay(scenario, keras, tmp_path) == recordings.expected(scenario, flavour)


@pytest.mark.parametrize("flavour", recordings.RECORDED)
def test_every_difference_is_one(flavour: str) -> None:
    recorded = recordings.RECORDED[flavour]
    assert tuple(recorded) == recordings.SCENARIOS
    assert len(recorded) == 37
    for scenario, events in recorded.items():
        difference = recordings.DIFFERENCES.get(scenario)
        differs = difference is not None and flavour in difference.flavours
        assert (recordings.expected(scenario, flavour) != events) == differs


def test_documented_table_is_up_to_date() -> None:
    assert recordings.table() in recordings.PAGE.read_text("utf-8")
