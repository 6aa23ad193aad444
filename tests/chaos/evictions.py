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
import io
import json
import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "helpers"))

import rounds
import yaml
from cluster_processes import Job, job
from fork_server import ForkServer
from idle_clock import idle_secs

from hookbridge.cli import main as command_line

WORKERS = {"one": 0, "async": 1, "sync": 1}
STEPS_FOR_EACH = 40  # eviction
RETRY_FROM = 128  # as `IsRetryableExitCode` of the training operator


def manifest(kind: str, steps: int) -> Any:
    """The TFJob of `job.py`."""
    words = ["--to=tfjob", "--image=local", "--evaluator", "--grace_secs=30"]
    words += [f"--num_workers={WORKERS[kind]}", "--num_ps=1", "--"]
    words += ["python", "job.py", f"kind={kind}", f"steps={steps}", "step_secs=0.02"]
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        assert command_line(["cluster", *words]) == 0
    return yaml.safe_load(output.getvalue())["spec"]


class Controller:
    """The controller of TFJobs, with the processes of a job as pods.

    It starts a pod again if its replicas have the policy `ExitCode` and its exit code
    is 128 or above. The job has failed if a pod has failed that is not started again,
    and it has succeeded if its chief has.

    Attributes:
      codes: how often pods have ended with each exit code.
      state: `Running`, `Succeeded` or `Failed`.
    """

    def __init__(self, spec: Any, it: Job) -> None:
        self._replicas = {k.lower(): r for k, r in spec["tfReplicaSpecs"].items()}
        self._cleans = spec["runPolicy"]["cleanPodPolicy"]
        self._job = it
        self.codes: collections.Counter[str] = collections.Counter()
        self.state = "Running"
        self._over: set[str] = set()

    def reconcile(self) -> None:
        """Looks at all pods once, and does what follows from their ends."""
        for pod, process in list(self._job.processes.items()):
            code = process.poll()
            if pod in self._over or code is None:
                continue
            code = code if code >= 0 else 128 - code
            self.codes[f"{pod} {code}"] += 1
            policy = self._replicas[pod.partition(" ")[0]]["restartPolicy"]
            restarts = policy == "ExitCode" and code >= RETRY_FROM
            if restarts and self.state == "Running":
                self._job.start(pod)
                continue
            self._over.add(pod)
            if code and self.state == "Running":
                self.state = "Failed"
            elif pod == "chief 0" and self.state == "Running":
                self.state = "Succeeded"
                assert self._cleans == "None"  # the evaluator ends by itself

    def evict(self, pod: str) -> None:
        """Ends a pod as the drain of its node does."""
        process = self._job.processes[pod]
        if process.poll() is None:
            os.kill(process.pid, signal.SIGTERM)
            spec = self._replicas[pod.partition(" ")[0]]["template"]["spec"]
            deadline = idle_secs() + spec["terminationGracePeriodSeconds"]
            while process.poll() is None and idle_secs() < deadline:
                time.sleep(0.05)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def run(
    kind: str, folder: Path, evictions: int, seed: int, server: ForkServer
) -> tuple[Any, list[str]]:
    """The end of a job whose random pods were evicted, and what was wrong."""
    steps = STEPS_FOR_EACH * (evictions + 1)
    spec, chance = manifest(kind, steps), random.Random(seed)
    kinds = {k.lower(): r for k, r in spec["tfReplicaSpecs"].items()}
    pods = [f"{k} {i}" for k, r in kinds.items() for i in range(r["replicas"])]
    (container,) = kinds["chief"]["template"]["spec"]["containers"]
    _, script, *options = container["command"]
    done = 0
    with job(folder, script, *options, tasks=pods, server=server) as it:
        controller = Controller(spec, it)

        def until(is_so: Any) -> None:
            def looked() -> bool:
                controller.reconcile()
                return controller.state == "Failed" or is_so()

            it.until(looked)

        def chief_steps() -> int:
            return len(it.events("chief 0", "step"))

        for number in range(evictions):
            wanted = chief_steps() + chance.randint(1, STEPS_FOR_EACH // 2)
            until(lambda w=wanted: controller.state != "Running" or chief_steps() >= w)
            if controller.state != "Running":
                break
            pod = chance.choice(pods)
            print(f"eviction {number + 1}: {pod}", flush=True)
            controller.evict(pod)
            done += 1
        until(lambda: controller.state != "Running")
        until(lambda: it.processes["evaluator 0"].poll() is not None)
    print(f"{kind}: exit codes {dict(sorted(controller.codes.items()))}", flush=True)
    if controller.state != "Succeeded":
        return None, [f"the job has ended as {controller.state}"]
    final = json.loads((folder / "final.json").read_text())
    wrong = [] if done == evictions else [f"{done} of {evictions} evictions"]
    if final["step"] != steps and kind != "async":
        wrong.append(f"it ended at step {final['step']}, not {steps}")
    evaluated = json.loads((folder / "evaluated.json").read_text())
    if evaluated != final["step"]:
        wrong.append(f"step {evaluated} was evaluated last, not {final['step']}")
    return final, wrong


def survive(
    kind: str, evictions: int, seed: int, folder: Path, server: ForkServer
) -> list[str]:
    """Compares a job with evictions with an undisturbed one; what was wrong."""
    final, wrong = run(kind, folder / "evicted", evictions, seed, server)
    if wrong or kind != "one":
        return wrong or rounds.far_from_truth(final)
    # Without evictions of its own, this job trains as many steps as the other one.
    calm = rounds.Job(kind, folder / "calm", seed, server, final["step"])
    wrong = calm.run(disturbed=False)
    same = not wrong and final == calm.final()
    return wrong if wrong or same else [f"final {final}, undisturbed {calm.final()}"]


if __name__ == "__main__":
    sys.exit(rounds.main(survive, tuple(WORKERS), "evictions", __doc__))
