"""Evicts tasks of a TFJob at random, and compares its end with an undisturbed job's.

    python tests/chaos/evictions.py --kind=one --evictions=100 --seed=1

`hookbridge cluster --to=tfjob` writes the manifest. `Controller` does with it what the
training operator does, with a process of this machine for each pod. `--kind` is `one`
(a chief), `async` or `sync` (a chief and a worker); each has a parameter server and an
evaluator too. The command's exit code is 1 if anything was wrong.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import io
import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "helpers"))

import rounds
import yaml
from idle_clock import idle_secs
from rounds import JOB, TOLERANCE, Start, started

from hookbridge.cli import main as command_line
from hookbridge.loops.tasks.local_cluster import free_ports

WORKERS = {"one": 0, "async": 1, "sync": 1}
STEPS_FOR_EACH = 40  # eviction
POLL_SECS = 0.05
DEADLINE_IDLE_SECS = 180.0
RETRY_FROM = 128  # as `IsRetryableExitCode` of the training operator
Pod = tuple[str, int]


def manifest(kind: str, folder: Path, steps: int) -> Any:
    """The TFJob of `job.py`."""
    words = ["--to=tfjob", "--image=local", "--evaluator", "--grace_secs=30"]
    words += [f"--num_workers={WORKERS[kind]}", "--num_ps=1", "--"]
    words += ["python", str(JOB), kind, str(folder), str(steps), ""]
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        assert command_line(["cluster", *words]) == 0
    return yaml.safe_load(output.getvalue())


class Controller:
    """The controller of TFJobs, with local processes as pods.

    It starts a pod again if its replicas have the policy `ExitCode` and its exit code
    is 128 or above. The job has failed if a pod has failed that is not started again,
    and it has succeeded if its chief has.

    Attributes:
      codes: how often pods have ended with each exit code.
      state: `Running`, `Succeeded` or `Failed`.
    """

    def __init__(self, made: Any, folder: Path, start: Start) -> None:
        self._replicas = made["spec"]["tfReplicaSpecs"]
        self._cleans = made["spec"]["runPolicy"]["cleanPodPolicy"]
        self._folder, self._start = folder, start
        self.pods: list[Pod] = [
            (kind, i)
            for kind, r in self._replicas.items()
            for i in range(r["replicas"])
        ]
        ports = free_ports(len(self.pods))
        self._cluster: dict[str, list[str]] = {}
        for (kind, _), port in zip(self.pods, ports, strict=True):
            self._cluster.setdefault(kind.lower(), []).append(f"127.0.0.1:{port}")
        self.codes: collections.Counter[str] = collections.Counter()
        self.state = "Running"
        self._processes = {pod: self._create(pod) for pod in self.pods}
        self._ended: dict[Pod, int] = {}

    def _create(self, pod: Pod) -> Any:
        kind, index = pod
        spec = self._replicas[kind]["template"]["spec"]
        (container,) = spec["containers"]
        task = {"type": kind.lower(), "index": index}
        config = {"cluster": self._cluster, "task": task, "environment": "cloud"}
        environment = rounds.environment(json.dumps(config))
        log = self._folder / f"{kind}_{index}.log"
        return self._start(container["command"][1:], environment, log)

    def reconcile(self) -> None:
        """Looks at all pods once, and does what follows from their ends."""
        for pod, process in self._processes.items():
            code = process.poll()
            if pod in self._ended or code is None:
                continue
            code = code if code >= 0 else 128 - code
            self.codes[f"{pod[0]} {code}"] += 1
            policy = self._replicas[pod[0]]["restartPolicy"]
            restarts = policy == "ExitCode" and code >= RETRY_FROM
            if restarts and self.state == "Running":
                self._processes[pod] = self._create(pod)
                continue
            self._ended[pod] = code
            if code and self.state == "Running":
                self.state = "Failed"
            elif pod[0] == "Chief" and self.state == "Running":
                self.state = "Succeeded"
                if self._cleans != "None":
                    self.end()

    def evict(self, pod: Pod) -> None:
        """Ends a pod as the drain of its node does."""
        process = self._processes[pod]
        if process.poll() is None:
            os.kill(process.pid, signal.SIGTERM)
            spec = self._replicas[pod[0]]["template"]["spec"]
            deadline = time.monotonic() + spec["terminationGracePeriodSeconds"]
            while process.poll() is None and time.monotonic() < deadline:
                time.sleep(POLL_SECS)
            self._kill(process)

    def is_running(self, pod: Pod) -> bool:
        """Whether a pod runs."""
        return self._processes[pod].poll() is None

    def end(self) -> None:
        """Kills all pods."""
        for process in self._processes.values():
            self._kill(process)

    def _kill(self, process: Any) -> None:
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        process.wait()


class Job:
    """A TFJob of `job.py` in a folder.

    Args:
      kind: one of `WORKERS`.
      folder: the folder of its files.
      steps: how many steps it trains.
      start: starts a task.
    """

    def __init__(self, kind: str, folder: Path, steps: int, start: Start) -> None:
        folder.mkdir(parents=True)
        self.kind, self._folder, self._steps = kind, folder, steps
        made = manifest(kind, folder, steps)
        self.controller = Controller(made, folder, start)

    def run(self, evictions: int, chance: random.Random) -> list[str]:
        """Evicts random pods of the job until its end; returns what was wrong."""
        try:
            for number in range(evictions):
                wanted = self._chief_steps() + chance.randint(1, STEPS_FOR_EACH // 2)
                self._until(functools.partial(self._has_come_to, wanted))
                if self.controller.state != "Running":
                    break
                pod = chance.choice(self.controller.pods)
                print(f"eviction {number + 1}: {pod[0]} {pod[1]}", flush=True)
                self.controller.evict(pod)
            self._until(lambda: self.controller.state != "Running")
            # Nobody ends the evaluator: it ends after the last checkpoint.
            self._until(lambda: not self.controller.is_running(("Evaluator", 0)))
        finally:
            self.controller.end()
        return self._wrong(number + 1 if evictions else 0, evictions)

    def final(self) -> Any:
        """The weights and the states of the callbacks at the end."""
        return json.loads((self._folder / "final.json").read_text())

    def _wrong(self, done: int, wanted: int) -> list[str]:
        if self.controller.state != "Succeeded":
            return [f"the job has ended as {self.controller.state}"]
        wrong = [] if done == wanted else [f"{done} of {wanted} evictions"]
        final = self.final()
        if final["step"] != self._steps and self.kind != "async":
            wrong.append(f"it ended at step {final['step']}, not {self._steps}")
        evaluated = json.loads((self._folder / "evaluated.json").read_text())
        if evaluated != final["step"]:
            wrong.append(f"step {evaluated} was evaluated last, not {final['step']}")
        return wrong

    def _chief_steps(self) -> int:
        path = self._folder / "chief_0.jsonl"
        return path.read_text().count('"step"') if path.exists() else 0

    def _has_come_to(self, steps: int) -> bool:
        return self._chief_steps() >= steps

    def _until(self, done: Callable[[], bool]) -> None:
        began = idle_secs()
        while not done() and self.controller.state != "Failed":
            self.controller.reconcile()
            if idle_secs() - began > DEADLINE_IDLE_SECS:
                raise TimeoutError(f"nothing for {DEADLINE_IDLE_SECS:g} idle seconds")
            time.sleep(POLL_SECS)


def compare(kind: str, calm: Any, final: Any) -> list[str]:
    """What differs between the ends of an evicted and of an undisturbed job."""
    if kind == "one":
        return [] if final == calm else [f"final {final}, undisturbed {calm}"]
    pairs = zip(final["weight"], calm["weight"], strict=True)
    far = max(abs(a - b) for a, b in pairs)
    return [] if far < TOLERANCE else [f"final weights differ by {far}"]


def survive(
    kind: str, evictions: int, seed: int, folder: Path, start: Start = started
) -> list[str]:
    """Runs a job with and without evictions; returns what was wrong."""
    steps = STEPS_FOR_EACH * (evictions + 1)
    calm = Job(kind, folder / "calm", steps, start)
    wrong = calm.run(0, random.Random(seed))
    job = Job(kind, folder / "evicted", steps, start)
    wrong += job.run(evictions, random.Random(seed))
    if not wrong:
        wrong = compare(kind, calm.final(), job.final())
    print(
        f"{kind}: exit codes {dict(sorted(job.controller.codes.items()))}", flush=True
    )
    return wrong


if __name__ == "__main__":
    sys.exit(rounds.main(survive, tuple(WORKERS), "evictions", __doc__))
