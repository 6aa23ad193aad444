"""The learning rate that parameter servers really use, read from the weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from cluster_processes import job
from fork_server import ForkServer

RATES = [0.5, 0.25, 0.25, 0.125, 1.0, 0.0625, 2.0, 0.03125]


@pytest.mark.slow
def test_in_a_session(tmp_path: Path, fork_server: ForkServer) -> None:
    tasks = ("ps 0", "worker 0")
    with job(
        tmp_path, "rate_job.py", "kind=session", tasks=tasks, server=fork_server
    ) as it:
        codes = it.wait()
    assert set(codes.values()) == {0}, it.logs()
    noted = it.events("worker 0", "weight")
    assert {each["device"] for each in noted} == {"/job:ps/task:0"}
    changes = np.diff([0.0, *(each["value"] for each in noted)])
    np.testing.assert_allclose(changes, RATES, rtol=1e-6)


@pytest.mark.slow
def test_in_fit(tmp_path: Path, fork_server: ForkServer) -> None:
    tasks = ("ps 0", "worker 0", "worker 1", "chief 0")
    with job(
        tmp_path, "rate_job.py", "kind=fit", tasks=tasks, server=fork_server
    ) as it:
        codes = it.wait()
    assert set(codes.values()) == {0}, it.logs()
    (noted,) = it.events("chief 0", "weight")
    assert "/job:ps" in noted["device"]
    # Two workers may run the steps in any order, so only the sum is known.
    assert noted["value"] == pytest.approx(sum(RATES), rel=1e-6)
