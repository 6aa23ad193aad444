"""Towers in a session cluster: two on each worker, two servers, synchronous."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from cluster_processes import job
from fork_server import ForkServer
from side_by_side import beside_others

TASKS = ("ps 0", "ps 1", "worker 0", "worker 1")
STEPS = 20


@beside_others()
def test_replicated_model_function(tmp_path: Path, fork_server: ForkServer) -> None:
    arguments = (f"last_step={STEPS}", "aggregate=2", "step_secs=0.01", "towers=2")
    jobs = {}
    # The chief must not end the job before the other worker has made a step.
    both = {"worker 0": ["with_peer=worker_1.jsonl", "peer_event=step"]}
    for name, tasks, own in (("cluster", TASKS, both), ("alone", ("worker 0",), {})):
        with job(
            *(tmp_path / name, "session_job.py", *arguments),
            tasks=tasks,
            own=own,
            server=fork_server,
            alone=len(tasks) == 1,
        ) as it:
            codes = it.wait()
        assert set(codes.values()) == {0}, it.logs()
        assert it.idle_secs_to_end() <= 10, it.logs()
        jobs[name] = it
    it = jobs["cluster"]
    for index, task in enumerate(TASKS[2:]):
        (placed,) = it.events(task, "placement")
        servers = {
            device.split("/task:")[1][0] for device in placed["variables"].values()
        }
        assert servers == {"0", "1"}
        assert placed["towers"] == [
            f"/job:worker/task:{index}/device:CPU:{tower}" for tower in (0, 1)
        ]
        assert it.events(task, "step")
    (ours,), (one,) = (each.events("worker 0", "end") for each in jobs.values())
    assert ours["step"] in range(STEPS, STEPS + 3)
    if ours["step"] == STEPS:  # the mean of equal gradients is the gradient
        for name, value in one["values"].items():
            np.testing.assert_allclose(ours["values"][name], value, rtol=1e-5)
