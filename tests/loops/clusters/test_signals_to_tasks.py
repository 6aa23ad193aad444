"""What a signal does to each kind of task of each loop: a table of your-cluster."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import NamedTuple

import tensorflow as tf
from cluster_processes import WITH_CHIEF, job
from fork_server import ForkServer
from side_by_side import beside_others

from hookbridge.ground.processes import exit_codes

ONE_KERAS = True

WORKERS = ("worker 0", "worker 1")
# Workers of a session may end without the chief; a job that is stopped has no end.
LAST, ENDLESS, FIRST_STEPS = 120, 10**6, 30
# Longer than several workers wait for the heartbeat of one of them.
STOPPED_SECS = 20.0
DONE, LOST, PREEMPTED = exit_codes.DONE, exit_codes.LOST, exit_codes.PREEMPTED


class Case(NamedTuple):
    """A signal to a task, and how the job ends."""

    loop: str
    task: str
    signal: str
    own: int  # the exit code of the task
    others: int  # that of each other task
    saved: str  # "end": what is trained, "all" of the job, or what was saved "before"

    def __str__(self) -> str:
        return f"{self.loop}: SIG{self.signal} to {self.task}"


SESSION, SERVERS, SEVERAL = "session", "parameter servers", "several workers"
SAMPLE = (
    Case(SERVERS, "ps 0", "TERM", PREEMPTED, PREEMPTED, "end"),
    Case(SEVERAL, "worker 1", "TERM", PREEMPTED, PREEMPTED, "end"),
)
# Tasks of one loop that fare alike share a row.
CASES = tuple(
    Case(loop, task, signal, code, code_of_job, saved)
    for loop, tasks, signal, code, code_of_job, saved in (
        (SESSION, ("chief 0", "ps 0"), "TERM", PREEMPTED, PREEMPTED, "end"),
        (SESSION, ("worker 0",), "TERM", PREEMPTED, DONE, "all"),
        (SESSION, ("chief 0", "ps 0"), "KILL", -9, LOST, "before"),
        (SESSION, ("worker 0",), "KILL", -9, DONE, "all"),
        (SESSION, ("chief 0", "ps 0", "worker 0"), "STOP", DONE, DONE, "all"),
        (SERVERS, ("chief 0",), "TERM", PREEMPTED, PREEMPTED, "end"),
        (SERVERS, ("worker 0",), "TERM", -15, DONE, "all"),
        (SERVERS, ("chief 0", "ps 0"), "KILL", -9, LOST, "before"),
        (SERVERS, ("worker 0",), "KILL", -9, DONE, "all"),
        (SERVERS, ("chief 0", "ps 0", "worker 0"), "STOP", DONE, DONE, "all"),
        (SEVERAL, ("worker 0",), "TERM", PREEMPTED, PREEMPTED, "end"),
        (SEVERAL, ("worker 0", "worker 1"), "KILL", -9, LOST, "before"),
        (SEVERAL, ("worker 0", "worker 1"), "STOP", LOST, LOST, "before"),
    )
    for task in tasks
)


def newest_step(folder: Path) -> int:
    newest = tf.train.latest_checkpoint(str(folder))
    return int(newest.rpartition("-")[2])


@beside_others(*SAMPLE, exhaustive=CASES)
def test_a_signal(case: Case, tmp_path: Path, fork_server: ForkServer) -> None:
    tasks = WORKERS if case.loop == SEVERAL else WITH_CHIEF
    chief = tasks[0]
    last = LAST if case.saved == "all" else ENDLESS
    arguments = f"loop={case.loop}", f"last={last}"
    with job(
        tmp_path, "signals_job.py", *arguments, server=fork_server, tasks=tasks
    ) as it:
        it.wait_for(chief, "step", FIRST_STEPS)
        if case.loop == SESSION and case.task.startswith("worker"):
            it.wait_for(case.task, "step")
        it.send(case.task, getattr(signal, f"SIG{case.signal}"))
        if case.signal == "STOP":
            began = time.monotonic()  # heartbeats go by that clock
            it.until(lambda: time.monotonic() - began > STOPPED_SECS)
            it.send(case.task, signal.SIGCONT)
        codes = it.wait()
        ends = it.events(chief, "end")
    assert codes.pop(case.task) == case.own, it.logs()
    assert set(codes.values()) == {case.others}, it.logs()
    step = newest_step(tmp_path / "saved")
    if case.saved == "before":
        assert step > 0 and not ends
        return
    assert [end["step"] for end in ends] == [step]
    assert step >= LAST or case.saved == "end"
