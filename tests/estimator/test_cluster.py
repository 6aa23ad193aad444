"""`train_and_evaluate` over real processes: chief, worker, server, evaluator."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import estimator_scenarios as scenarios
import pytest
import tensorflow as tf

JOB = Path(__file__).with_name("cluster_job.py")
MAX_STEPS = 500
TASKS = ["ps", "chief", "worker", "evaluator"]


def free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


@contextlib.contextmanager
def cluster(folder: Path) -> Iterator[dict[str, subprocess.Popen[bytes]]]:
    """Starts the four processes; none of them outlives the block."""
    chief, worker, server = (f"127.0.0.1:{port}" for port in free_ports(3))
    spec = {"chief": [chief], "worker": [worker], "ps": [server]}
    processes: dict[str, subprocess.Popen[bytes]] = {}
    try:
        for task in TASKS:
            config = {"cluster": spec, "task": {"type": task, "index": 0}}
            with (folder / f"{task}.log").open("wb") as log:
                processes[task] = subprocess.Popen(
                    [
                        sys.executable,
                        str(JOB),
                        str(folder / "model"),
                        str(MAX_STEPS),
                        str(folder / f"{task}.json"),
                    ],
                    env={
                        **os.environ,
                        "TF_CONFIG": json.dumps(config),
                        "TF_CPP_MIN_LOG_LEVEL": "3",
                        "CUDA_VISIBLE_DEVICES": "-1",
                    },
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
        yield processes
    finally:
        for process in processes.values():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(10)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The folder of a finished job, and how the processes ended."""
    folder = tmp_path_factory.mktemp("cluster")
    deadline = time.monotonic() + 200
    with cluster(folder) as processes:
        codes: dict[str, int | None] = {}
        for task in ("chief", "worker", "evaluator"):
            with contextlib.suppress(subprocess.TimeoutExpired):
                processes[task].wait(max(1.0, deadline - time.monotonic()))
            codes[task] = processes[task].poll()
        # A parameter server serves until it is ended from outside, as ever.
        codes["ps"] = processes["ps"].poll()
    assert all(process.poll() is not None for process in processes.values())
    return folder, codes


def log(folder: Path, task: str) -> str:
    return (folder / f"{task}.log").read_text(errors="replace")[-3000:]


@pytest.mark.slow
@pytest.mark.parametrize("task", ["chief", "worker", "evaluator"])
def test_task_ends_by_itself(finished: Any, task: str) -> None:
    folder, codes = finished
    assert codes[task] == 0, log(folder, task)


@pytest.mark.slow
def test_parameter_server_was_serving_to_the_end(finished: Any) -> None:
    folder, codes = finished
    assert codes["ps"] is None, log(folder, "ps")


@pytest.mark.slow
@pytest.mark.parametrize("task", ["chief", "worker"])
def test_hooks_and_callbacks_of_every_trainer_ran(finished: Any, task: str) -> None:
    folder, _ = finished
    report = json.loads((folder / f"{task}.json").read_text())
    assert report["ended"] and 0 < report["steps"] <= MAX_STEPS
    assert report["events"][0] == "train_begin"
    assert report["events"][-1] == "train_end"
    assert any(event.startswith("epoch_end") for event in report["events"])


@pytest.mark.slow
def test_trainers_shared_the_work(finished: Any) -> None:
    folder, _ = finished
    steps = [
        json.loads((folder / f"{task}.json").read_text())["steps"]
        for task in ("chief", "worker")
    ]
    # Both may be in a step when the last one is counted.
    assert MAX_STEPS <= sum(steps) <= MAX_STEPS + 2
    reader = tf.train.load_checkpoint(str(folder / "model"))
    assert reader.get_tensor("global_step") in range(MAX_STEPS, MAX_STEPS + 3)


@pytest.mark.slow
def test_evaluator_evaluated_the_last_checkpoint(finished: Any) -> None:
    folder, _ = finished
    steps = {step for step, _, _ in scenarios.events(folder / "model" / "eval")}
    assert max(steps) >= MAX_STEPS
