"""A recorder in a session cluster: the chief records its own steps, and nobody else."""

from __future__ import annotations

from pathlib import Path

from cluster_processes import job
from fork_server import ForkServer
from side_by_side import beside_others

from hookbridge.reference.comparison import compare
from hookbridge.reference.recordings.recording_files import Recording

ALONE = ("chief 0",)
WITH_SERVER = ("ps 0", *ALONE)
WITH_WORKER = (*WITH_SERVER, "worker 0")


def record(
    tasks: tuple[str, ...], tmp_path: Path, server: ForkServer, *options: str
) -> Path:
    """Trains with a recorder on each task; returns the folder of the recording."""
    folder = tmp_path / str(len(tasks))
    to = folder / "run"
    words = ("session_job.py", "last_step=20", "batches=1000", f"record={to}", *options)
    alone = len(tasks) == 1
    with job(folder, *words, tasks=tasks, server=server, alone=alone) as it:
        codes = it.wait()
    assert set(codes.values()) == {0}, it.logs()
    return to


@beside_others()
def test_the_chief_records_its_own_steps(
    tmp_path: Path, fork_server: ForkServer
) -> None:
    """With its variables on a server it records what it records alone."""
    alone = record(ALONE, tmp_path, fork_server)
    cluster = record(WITH_SERVER, tmp_path, fork_server)
    result = compare(alone, cluster)
    assert result.is_same, str(result)
    assert all(layer.measures for layer in result.layers), str(result)
    for folder in (alone, cluster):
        steps = Recording(folder).steps
        assert [step.line["norms"]["global_step"] for step in steps] == [1, 2, 3, 4, 5]


@beside_others()
def test_a_worker_records_nothing(tmp_path: Path, fork_server: ForkServer) -> None:
    """Its recorder has the same folder; the worker moves the weights between steps."""
    folder = record(WITH_WORKER, tmp_path, fork_server, "step_secs=0.05")
    recording = Recording(folder)
    assert [step.number for step in recording.steps] == [1, 2, 3, 4, 5]
    counted = [step.line["norms"]["global_step"] for step in recording.steps]
    assert counted == sorted(set(counted))
    assert len(recording.steps[0].line["gradient_norms"]) == 2
