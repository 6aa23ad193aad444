"""One round of each kind of the chaos test; `rounds.py` runs any number of rounds."""

from __future__ import annotations

from pathlib import Path

import evictions
import pytest
import rounds
from fork_server import ForkServer

STEPS = 120  # so many that the job is killed in the middle


@pytest.mark.slow
@pytest.mark.parametrize("kind", rounds.TASKS)
def test_a_killed_job_goes_on_from_its_checkpoint(
    kind: str, tmp_path: Path, fork_server: ForkServer
) -> None:
    assert rounds.survive(kind, 1, 1, tmp_path, fork_server, STEPS) == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["one", "sync"])
def test_an_evicted_job_ends_like_an_undisturbed_one(
    kind: str, tmp_path: Path, fork_server: ForkServer
) -> None:
    # With this seed a chief comes back before the servers of the stopped job end.
    assert evictions.survive(kind, 4, 3, tmp_path, fork_server) == []
