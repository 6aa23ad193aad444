"""One round of each kind of the chaos test; `rounds.py` runs any number of rounds."""

from __future__ import annotations

from pathlib import Path

import evictions
import pytest
import rounds
from fork_server import ForkServer

STEPS = 60  # so many that the job is killed in the middle
newest_only = pytest.mark.one_tensorflow
long = pytest.mark.exhaustive


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "seed"),
    [
        ("one", 1),  # the chief dies before it writes its second checkpoint
        pytest.param("async", 6, marks=[newest_only, long]),  # the server is killed
        pytest.param("sync", 7, marks=[newest_only, long]),  # the worker is killed
        ("fit", 43),  # the chief dies after its second checkpoint
    ],
)
def test_a_killed_job_goes_on_from_its_checkpoint(
    kind: str, seed: int, tmp_path: Path, fork_server: ForkServer
) -> None:
    assert rounds.survive(kind, 1, seed, tmp_path, fork_server, STEPS) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "seed"),
    [
        pytest.param("one", 3, marks=[newest_only, long]),  # evaluator, then chief
        ("sync", 7),  # the worker, then the chief
    ],
)
def test_an_evicted_job_ends_like_an_undisturbed_one(
    kind: str, seed: int, tmp_path: Path, fork_server: ForkServer
) -> None:
    # The chief comes back before the servers of the stopped job end.
    assert evictions.survive(kind, 2, seed, tmp_path, fork_server) == []
