"""A chief's process ends well, whatever TensorFlow's threads are doing."""

from __future__ import annotations

from pathlib import Path

import pytest
from fork_server import ForkServer
from ps_processes import cluster

pytestmark = pytest.mark.slow


def test_threads_that_still_make_iterators_are_waited_for(
    tmp_path: Path, fork_server: ForkServer
) -> None:
    with cluster(tmp_path, "exit_job.py", fork_server) as job:
        job.start()
        codes = job.wait()
    assert set(codes.values()) == {0}, job.logs()
    assert job.note("leaves")
    # An interpreter that ends while such a thread runs may abort: docs/decisions/0006.
    assert job.note("ends")["threads"] == ["MainThread"]


def test_servers_see_a_job_that_is_over_at_once(
    tmp_path: Path, fork_server: ForkServer
) -> None:
    with cluster(tmp_path, "brief_job.py", fork_server) as job:
        job.start()
        codes = job.wait()
    assert set(codes.values()) == {0}, job.logs()
