"""Estimator's `train_and_evaluate`: one stop ends chief, worker, server, evaluator."""

from __future__ import annotations

from pathlib import Path

import pytest
import tensorflow as tf
from cluster_processes import Job, job
from old_checkpoint import OLD_STEP, write_checkpoint

TASKS = ("ps 0", "chief 0", "worker 0", "evaluator 0")
# Which roles are told what in which process; `worker` and `split` differ at the end.
TOLD = {
    "chief 0": {
        "train": {"split", "chief", "worker", "all"},
        "train_end": {"split", "chief", "worker", "all"},
    },
    "worker 0": {
        "train": {"split", "worker", "all"},
        "train_end": {"worker", "all"},
    },
    "evaluator 0": {"test_end": {"split", "chief", "evaluator", "all"}},
    "ps 0": {},
}


def told(it: Job, task: str) -> dict[str, set[str]]:
    """What callbacks of which roles were told in a process."""
    found: dict[str, set[str]] = {}
    for noted in it.events(task, "role"):
        found.setdefault(noted["told"], set()).add(noted["role"])
    return found


@pytest.mark.slow
def test_a_stop_in_one_process_stops_all_and_the_next_run_goes_on(
    tmp_path: Path,
) -> None:
    model_dir = tmp_path / "model"
    # Of plain TensorFlow, as every checkpoint before there was a common stop.
    names = write_checkpoint(model_dir)
    reached = OLD_STEP
    # The second run finds the stop of the first one in the directory.
    for name, own in (
        ("first", {"worker 0": ["stop_training_at=30"]}),
        ("second", {"chief 0": ["request_stop_at=30"]}),
        ("third", {"evaluator 0": ["stop_in_test=1"]}),
    ):
        arguments = ("aggregate=2", f"dir={model_dir}")
        with job(
            tmp_path / name, "estimator_job.py", *arguments, tasks=TASKS, own=own
        ) as it:
            codes = it.wait(timeout_secs=80)
        assert set(codes.values()) == {0}, it.logs()
        assert it.secs_to_end() <= 10, it.logs()
        assert it.events("chief 0", "session")[0]["step"] == reached
        assert it.events("worker 0", "end") and it.events("chief 0", "train_end")
        checkpoint = tf.train.latest_checkpoint(str(model_dir))
        before, reached = reached, int(checkpoint.rpartition("-")[2])
        # The evaluator stops the job after the first checkpoint that it sees.
        assert reached >= before + (20 if name != "third" else 0)
        assert it.events("evaluator 0", "left")[0]["evaluated"] == reached
        # The variables are those of the model, and no more.
        (graph,) = it.events("chief 0", "variables")
        saved = [name for name, _ in tf.train.list_variables(checkpoint)]
        assert saved == graph["names"] == names
        assert {task: told(it, task) for task in TASKS} == TOLD
        for task in TASKS:
            assert "Traceback" not in it.log(task), it.log(task)
