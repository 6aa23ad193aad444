"""Checkpoint, state and what callbacks set are of one moment in clusters too.

A job ends in one of the ways that it has, and a new one goes on from its files. The
chief's callback and the newest checkpoint then have what one undisturbed job leaves.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from cluster_processes import ALL, WITH_CHIEF, job
from fork_server import ForkServer
from moment_hosts import EPOCHS, LENGTH, weight_in
from moment_rows import simulated
from side_by_side import beside_others

from hookbridge.ground.processes import exit_codes

TASKS = {
    "sync": ALL,
    "asynchronous": ALL,
    "servers": WITH_CHIEF,
    "workers": ("chief 0", "worker 0"),
}
CODES = {
    "sigterm": exit_codes.PREEMPTED,
    "hook": exit_codes.FAILED,
    "callback": exit_codes.FAILED,
}
WITHIN, AT_END = LENGTH + 2, 2 * LENGTH
UNDISTURBED = f"epochs={EPOCHS}"


def check(kind: str, end: str, folder: Path, server: ForkServer) -> None:
    """A job that ends in this way goes on; see `moment_job` for the ends.

    An end that begins with the name of a task is that of this task alone.
    """
    tasks, ends = TASKS[kind], [end, UNDISTURBED]
    for number, each in enumerate(ends[end == UNDISTURBED :]):
        *alone, word = each.split(": ")
        own = {t: [word if t in (alone or tasks) else UNDISTURBED] for t in tasks}
        with job(
            *(folder / str(number), "moment_job.py"),
            *(f"kind={kind}", f"dir={folder / 'saved'}"),
            server=server,
            tasks=tasks,
            own=own,
        ) as it:
            codes = set(it.wait().values())
            # Where the data of one of many servers ends, TensorFlow itself may fail.
            if (kind, word[:4]) != ("servers", "data"):
                assert codes == {CODES.get(word.partition("=")[0], 0)}, it.logs()
            chief = "chief 0" if "chief 0" in tasks else "worker 0"
            (left,) = it.events(chief, "left")
    rate, weight = simulated([LENGTH] * EPOCHS, learns=False)
    assert (left["begins"], left["ends"]) == (list(range(EPOCHS)), EPOCHS)
    assert left["last_rate"] == pytest.approx(rate)
    assert weight_in(str(folder / "saved")) == pytest.approx(weight)


@beside_others(
    f"sigterm={WITHIN}",
    exhaustive=(
        f"worker 1: data={WITHIN}",
        f"last={WITHIN}",
        f"data={WITHIN}",
        f"hook={WITHIN}",
        UNDISTURBED,
    ),
)
def test_synchronous_workers(end: str, tmp_path: Path, fork_server: ForkServer) -> None:
    check("sync", end, tmp_path, fork_server)


@pytest.mark.one_tensorflow
@beside_others(
    f"callback={WITHIN}",
    exhaustive=(
        f"data={WITHIN // 2}",
        f"epochs={AT_END // LENGTH}",
        f"sigterm={WITHIN}",
        f"last={WITHIN}",
        UNDISTURBED,
    ),
)
def test_asynchronous_workers(
    end: str, tmp_path: Path, fork_server: ForkServer
) -> None:
    check("asynchronous", end, tmp_path, fork_server)


@beside_others(
    f"sigterm={WITHIN}",
    exhaustive=(
        f"data={LENGTH + 1}",
        f"last={WITHIN}",
        f"last={AT_END}",
        f"callback={WITHIN}",
        UNDISTURBED,
    ),
)
def test_fit_with_parameter_servers(
    end: str, tmp_path: Path, fork_server: ForkServer
) -> None:
    check("servers", end, tmp_path, fork_server)


@pytest.mark.one_tensorflow
@beside_others(
    f"hook={WITHIN}",
    exhaustive=(
        f"last={WITHIN}",
        f"data={WITHIN // 2}",
        f"epochs={AT_END // LENGTH}",
        UNDISTURBED,
    ),
)
def test_fit_in_several_processes(
    end: str, tmp_path: Path, fork_server: ForkServer
) -> None:
    check("workers", end, tmp_path, fork_server)
