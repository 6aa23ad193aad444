"""Towers in a session cluster: two on each worker, two servers, synchronous."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from cluster_processes import Job, job
from fork_server import ForkServer

import hookbridge as hb

TASKS = ("ps 0", "ps 1", "worker 0", "worker 1")
WORKERS = TASKS[2:]
STEPS = 20


def run(folder: Path, server: ForkServer, kind: str) -> Job:
    arguments = (f"kind={kind}", f"last_step={STEPS}", "aggregate=2", "step_secs=0.01")
    with job(folder, "tower_job.py", *arguments, tasks=TASKS, server=server) as it:
        codes = it.wait()
    assert set(codes.values()) == {0}, it.logs()
    assert it.idle_secs_to_end() <= 10, it.logs()
    for index, task in enumerate(WORKERS):
        (placed,) = it.events(task, "placement")
        servers = {
            device.split("/task:")[1][0] for device in placed["variables"].values()
        }
        assert servers == {"0", "1"}
        assert placed["towers"] == [
            f"/job:worker/task:{index}/device:CPU:{tower}" for tower in (0, 1)
        ]
        assert it.events(task, "step")
    return it


def one_process() -> Any:
    """The same training without a cluster."""
    import tower_job

    loop = hb.loops.TowerLoop(
        tower_job.model,
        optimizer=tf.compat.v1.train.GradientDescentOptimizer,
        learning_rate=0.05,
        num_towers=2,
    )
    return loop.train(tower_job.input_fn, max_steps=STEPS)


@pytest.mark.slow
def test_tower_loop(tmp_path: Path, fork_server: ForkServer) -> None:
    it = run(tmp_path, fork_server, "loop")
    (result,) = it.events("worker 0", "result")
    assert result["step"] in range(STEPS, STEPS + 3)
    if result["step"] == STEPS:  # the mean of equal gradients is the gradient
        for name, value in one_process().variables.items():
            np.testing.assert_allclose(result["variables"][name], value, rtol=1e-5)


@pytest.mark.slow
def test_replicated_model_function(tmp_path: Path, fork_server: ForkServer) -> None:
    run(tmp_path, fork_server, "replicated")
