"""A chief's process ends well, whatever TensorFlow's threads are doing."""

from __future__ import annotations

from pathlib import Path

import pytest
from cluster_processes import WITH_CHIEF, job
from fork_server import ForkServer

pytestmark = pytest.mark.slow


def test_threads_that_still_make_iterators_are_waited_for(
    tmp_path: Path, fork_server: ForkServer
) -> None:
    with job(tmp_path, "exit_job.py", server=fork_server, tasks=WITH_CHIEF) as it:
        codes = it.wait()
    assert set(codes.values()) == {0}, it.logs()
    assert it.of_chief("leaves")
    # An interpreter that ends while such a thread runs may abort: docs/decisions/0006.
    assert it.of_chief("ends")["threads"] == ["MainThread"]
