"""Every process ends with the last step, whoever stops first and why."""

from __future__ import annotations

from pathlib import Path

import pytest
from cluster_processes import job

LIMIT_SECS = 10.0


# `replicas_to_aggregate` is below, at and above the number of workers; None: each
# worker updates by itself.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("aggregate", "arguments", "own", "reason", "failing"),
    [
        (2, ["last_step=40"], {}, "asked for a stop", None),
        (1, [], {"worker 1": ["stop_training_at=20"]}, "asked for a stop", None),
        (3, [], {"worker 1": ["batches=20"]}, "its data ended", None),
        (2, [], {"worker 0": ["raise_at=20"]}, "the hook of this", "worker 0"),
        (None, [], {"worker 0": ["request_stop_at=20"]}, "asked for a stop", None),
        (None, [], {"worker 1": ["nan=0"]}, "NaN loss", "worker 1"),
    ],
    ids=[
        "sync-step-limit",
        "sync-below-stop_training",
        "sync-above-end-of-data",
        "sync-exception-in-chief",
        "async-request_stop",
        "async-nan-in-worker",
    ],
)
def test_all_end(
    tmp_path: Path,
    aggregate: int | None,
    arguments: list[str],
    own: dict[str, list[str]],
    reason: str,
    failing: str | None,
) -> None:
    if aggregate is not None:
        arguments = [f"aggregate={aggregate}", *arguments]
    with job(tmp_path, "session_job.py", *arguments, own=own) as it:
        codes = it.wait(timeout_secs=60)
    expected = {task: int(task == failing) for task in codes}
    assert codes == expected, it.logs()
    assert it.secs_to_end() <= LIMIT_SECS, it.logs()
    if failing:
        assert reason in it.log(failing)
    for task in {"worker 0", "worker 1"} - {failing}:
        (left,) = it.events(task, "left")
        assert reason in left["reason"]
        # A stop from elsewhere is a clean end: hooks get theirs, and callbacks, of
        # which `on_train_end` is the chief's.
        assert it.events(task, "end")
        assert len(it.events(task, "train_end")) == int(task == "worker 0")
    for task in set(codes) - {failing}:
        assert "Traceback" not in it.log(task), it.log(task)
