"""Checkpoint, state and what callbacks set are of one moment in `fit` of a v1 graph."""

from __future__ import annotations

from typing import Any

import pytest
from moment_hosts import EPOCHS, LAST, LENGTH, Ending, fit, left_by

ENDINGS = [
    Ending("hook", LENGTH + 2, 3),
    Ending("hook", 2 * LENGTH, 3, False),
    Ending("later hook", 2 * LENGTH + 1, LENGTH),
    Ending("sigterm", LENGTH + 1, 2),
    Ending("error", LENGTH + 3, 2, False),
    Ending("callback", LENGTH + 2, 1),
]


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_run_that_ended_goes_on(keras2: Any, ending: Ending) -> None:
    whole = left_by(keras2, "graph", fit, [LAST])
    assert (whole.begins, whole.ends) == (list(range(EPOCHS)), EPOCHS)
    assert left_by(keras2, "graph", fit, [ending, LAST]) == whole
