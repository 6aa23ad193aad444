"""Estimator's `train_and_evaluate`: one stop ends chief, worker, server, evaluator."""

from __future__ import annotations

from pathlib import Path

import pytest
import tensorflow as tf
from cluster_processes import job

TASKS = ("ps 0", "chief 0", "worker 0", "evaluator 0")


@pytest.mark.slow
def test_a_stop_in_one_process_stops_all_and_the_next_run_goes_on(
    tmp_path: Path,
) -> None:
    model_dir = tmp_path / "model"
    reached = 0
    # The second run finds the stop of the first one in the directory.
    for name, own in (
        ("first", {"worker 0": ["stop_training_at=30"]}),
        ("second", {"chief 0": ["request_stop_at=30"]}),
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
        assert reached >= before + 20
        assert it.events("evaluator 0", "left")[0]["evaluated"] == reached
        # The variables are those of the model, and no more.
        (graph,) = it.events("chief 0", "variables")
        saved = [name for name, _ in tf.train.list_variables(checkpoint)]
        assert saved == graph["names"]
