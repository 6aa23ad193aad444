"""Checkpoint, state and what callbacks set are of one moment in clusters too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cluster_processes import ALL, WITH_CHIEF, job
from fork_server import ForkServer
from moment_hosts import EPOCHS, LENGTH, weight_in

from hookbridge.ground import exit_codes

pytestmark = pytest.mark.slow

ROWS = {
    "sync": ("worker 0", ALL),
    "servers": ("chief 0", WITH_CHIEF),
    "workers": ("chief 0", ("chief 0", "worker 0")),
}
MIDDLE = LENGTH + 2  # a step within an epoch


def left_by(folder: Path, server: ForkServer, kind: str, *runs: str) -> list[Any]:
    """What the chief's callback and the newest checkpoint have after these runs."""
    chief, tasks = ROWS[kind]
    for number, option in enumerate(runs):
        with job(
            *(folder / str(number), "moment_job.py"),
            *(f"kind={kind}", f"dir={folder / 'saved'}", option),
            server=server,
            tasks=tasks,
        ) as it:
            codes = it.wait()
            expected = exit_codes.PREEMPTED if "sigterm" in option else 0
            assert set(codes.values()) == {expected}, it.logs()
            (note,) = it.events(chief, "left")
    counted = [note[name] for name in ("begins", "ends", "last_rate")]
    return [*counted, weight_in(str(folder / "saved"))]


@pytest.mark.parametrize(
    ("kind", "ending"),
    [
        ("sync", f"last={MIDDLE}"),
        ("sync", f"sigterm={MIDDLE}"),
        ("servers", f"last={MIDDLE}"),
        ("servers", f"sigterm={MIDDLE}"),
        ("workers", f"last={MIDDLE}"),
    ],
)
def test_a_job_that_ended_goes_on(
    tmp_path: Path, fork_server: ForkServer, kind: str, ending: str
) -> None:
    whole = left_by(tmp_path / "whole", fork_server, kind, "all=1")
    assert whole[:2] == [list(range(EPOCHS)), EPOCHS]
    assert left_by(tmp_path / "parts", fork_server, kind, ending, "all=1") == whole
