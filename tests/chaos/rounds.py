"""Kills a job at random moments, starts it again, and checks its restored state.

    python tests/chaos/rounds.py --kind=async --rounds=100 --seed=1

`--kind` is `one` (one worker and a server), `async`, `sync` (`SyncReplicasOptimizer`)
or `fit` (`ParameterServerStrategy`). In each round one random task dies: it gets
SIGKILL, SIGTERM or SIGINT at a random moment, or kills itself in the middle of a save,
of a validation or between events. Then the other tasks are killed too, and the job
starts again from its newest checkpoint. The command prints one line for each round and
the number of rounds survived; its exit code is 1 if a round was not survived.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "helpers"))

from idle_clock import idle_secs

from hookbridge.loops.tasks.local_cluster import LocalCluster

JOB = Path(__file__).with_name("job.py")
KINDS = ("one", "async", "sync", "fit")
STEPS = 200
PLACES = ("saving", "saved", "step", "epoch", "validation", "begin")
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
DEADLINE_IDLE_SECS = 120.0
# How far the weights of several workers may be from those of an undisturbed run.
TOLERANCE = 0.1


# Starts `python ARGUMENTS` with more environment variables; appends output to a file.
Start = Callable[[Sequence[str], Mapping[str, str], Path], Any]


def started(arguments: Sequence[str], environment: Mapping[str, str], log: Path) -> Any:
    """Starts a new Python process."""
    with log.open("ab") as output:
        return subprocess.Popen(
            [sys.executable, *arguments],
            env={**os.environ, **environment},
            stdout=output,
            stderr=output,
            start_new_session=True,
        )


def environment(tf_config: str) -> dict[str, str]:
    """The environment variables of a task."""
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
    return {"TF_CONFIG": tf_config, **quiet}


class Job:
    """A job in a folder, which can be started several times.

    Args:
      kind: one of `KINDS`.
      folder: the folder of its files.
      seed: the seed of its random faults.
      start: starts a task.
      steps: how many steps it trains.
    """

    def __init__(
        self, kind: str, folder: Path, seed: int, start: Start, steps: int
    ) -> None:
        self.kind, self.folder, self._start = kind, folder, start
        self._steps = steps
        self._random = random.Random(seed)
        self._started = 0
        folder.mkdir(parents=True, exist_ok=True)

    def run(self, *, disturbed: bool) -> list[str]:
        """Starts all tasks, then waits for their end or kills them.

        Args:
          disturbed: whether to kill one task, and then the others.

        Returns:
          A line for each fault that was found.
        """
        expected, lines = self._expected(), self._lines()
        self._started += 1
        configs = LocalCluster(
            num_workers={"one": 0, "fit": 2}.get(self.kind, 1), num_ps=1
        ).configs()
        victim = self._random.randrange(len(configs))
        self.what = "undisturbed"
        death = ""
        if disturbed:
            if configs[victim].task_type == "chief" and self._random.random() < 0.6:
                place = self._random.choice(PLACES)
                death = (
                    f"{place}:{self._random.randint(1, 3) if place != 'begin' else 1}"
                )
                self.what = f"chief dies at {death}"
            else:
                kill = self._random.choice(SIGNALS)
                after = self._random.uniform(0, 2.5)
                name = f"{configs[victim].task_type} {configs[victim].task_index}"
                self.what = f"{kill.name} to {name} after {after:.1f} s"
        processes = []
        for i, config in enumerate(configs):
            name = f"{config.task_type}_{config.task_index}"
            arguments = [self.kind, str(self.folder), str(self._steps)]
            log = self.folder / f"{name}.{self._started}.log"
            words = [str(JOB), *arguments, death * (i == victim)]
            processes.append(self._start(words, environment(config.to_json()), log))
        try:
            if not disturbed:
                return self._finish(processes) + self._check(expected, lines)
            if death:
                _wait(lambda: processes[victim].poll() is not None)
            else:
                _wait(lambda: self._lines() != lines or processes[0].poll() is not None)
                time.sleep(after)
                os.kill(processes[victim].pid, kill)
                time.sleep(self._random.uniform(0, 2))
        finally:
            for process in processes:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        return self._check(expected, lines)

    @property
    def is_over(self) -> bool:
        return (self.folder / "final.json").exists()

    def final(self) -> Any:
        return json.loads((self.folder / "final.json").read_text())

    def _finish(self, processes: list[Any]) -> list[str]:
        _wait(lambda: all(process.poll() is not None for process in processes))
        codes = [process.poll() for process in processes]
        return [] if not any(codes) else [f"exit codes {codes} without any fault"]

    def _lines(self) -> dict[str, int]:
        return {
            path.stem: len(path.read_text().splitlines())
            for path in self.folder.glob("*.jsonl")
        }

    def _journal(self, task: str) -> list[Any]:
        lines = (self.folder / f"{task}.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]

    def _expected(self) -> tuple[int, list[Any]]:
        """The step of the newest checkpoint, and the states that may be beside it.

        A state may be from the moment when the checkpoint was made, or from a later
        event of the same step.
        """
        index = self.folder / "model" / "checkpoint"
        if not index.exists():
            return 0, []
        name = index.read_text().splitlines()[0].split('"')[1]
        step, found = int(name.rpartition("-")[2]), []
        for entry in self._journal("chief_0"):
            if entry["what"] == "saving" and entry["step"] == step:
                found = [entry]
            elif found and entry["what"] == "begin":
                found.append(None)
            elif found and found[-1] is not None:
                steps = sum(each["what"] == "step" for each in found)
                if entry["what"] == "saving" or steps + (entry["what"] == "step") > 1:
                    found.append(None)
                else:
                    found.append(entry)
        return step, [each for each in found if each is not None]

    def _check(self, expected: tuple[int, list[Any]], lines: Any) -> list[str]:
        """Compares the state in which each task began with that of the checkpoint."""
        step, allowed = expected
        wrong = []
        for path in sorted(self.folder.glob("*.jsonl")):
            task = path.stem
            new = self._journal(task)[lines.get(task, 0) :]
            began = next((entry for entry in new if entry["what"] == "begin"), None)
            if began is None or not allowed or step == 0:
                continue
            others_step = task != "chief_0" or self.kind in ("async", "sync")
            if began["step"] < step or (began["step"] > step and not others_step):
                wrong.append(
                    f"{task}: began at step {began['step']} in place of {step}"
                )
            if began["epoch"] < step // 10:
                wrong.append(f"{task}: epoch {began['epoch']} at step {began['step']}")
            if not any(_close(began["rate"], each["rate"]) for each in allowed):
                rates = sorted({each["rate"] for each in allowed if each["rate"]})
                wrong.append(f"{task}: rate {began['rate']}, expected one of {rates}")
            if not any(began["state"] == each["state"] for each in allowed):
                wrong.append(
                    f"{task}: state {began['state']}, expected one of "
                    f"{[each['state'] for each in allowed]}"
                )
        return wrong


def _close(a: float | None, b: float | None) -> bool:
    return b is None or (a is not None and abs(a - b) <= 1e-6 * abs(b))


def _wait(done: Any) -> None:
    began = idle_secs()
    while not done():
        if idle_secs() - began > DEADLINE_IDLE_SECS:
            raise TimeoutError(f"nothing happened for {DEADLINE_IDLE_SECS:g} idle s")
        time.sleep(0.02)


def survive(
    kind: str,
    rounds: int,
    seed: int,
    folder: Path,
    start: Start = started,
    steps: int = STEPS,
) -> list[str]:
    """Disturbs a job for some rounds; returns what was wrong, a line for each fault."""

    def new(name: str, seed: int) -> Job:
        return Job(kind, folder / name, seed, start, steps)

    calm = new("calm", seed)
    wrong = calm.run(disturbed=False)
    job, generation, survived = new("job0", seed), 0, 0
    for number in range(rounds):
        found = job.run(disturbed=True)
        survived += not found
        print(f"round {number + 1}: {job.what}: {'; '.join(found) or 'ok'}", flush=True)
        wrong += found
        if job.is_over:
            wrong += _compare(calm, job)
            generation += 1
            job = new(f"job{generation}", seed + generation)
    found = job.run(disturbed=False)
    wrong += [*found, *_compare(calm, job)]
    print(f"{kind}: {survived} of {rounds} rounds survived", flush=True)
    return wrong


def _compare(calm: Job, job: Job) -> list[str]:
    """What differs between the end of a disturbed and of an undisturbed job."""
    if not job.is_over:
        return ["the job came to no end"]
    ours, theirs = job.final(), calm.final()
    if job.kind == "one":
        # A task that dies between a save and the later events of the same step loses
        # these events. So `Counter` may be behind, but the weights may not.
        same = ours["weight"] == theirs["weight"]
        found = [] if same else [f"final {ours}, undisturbed {theirs}"]
    else:
        pairs = zip(ours["weight"], theirs["weight"], strict=True)
        far = max(abs(a - b) for a, b in pairs)
        found = [] if far < TOLERANCE else [f"final weights differ by {far}"]
    for line in found:
        print(line, flush=True)
    return found


def main(
    survive: Callable[[str, int, int, Path], list[str]],
    kinds: Sequence[str],
    what: str,
    doc: str,
) -> int:
    """The command line of this file and of `evictions.py`."""
    parser = argparse.ArgumentParser(description=doc.split("\n")[0])
    parser.add_argument("--kind", choices=kinds, default="one")
    parser.add_argument(f"--{what}", dest="number", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", help="kept for inspection; else temporary")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(options.folder or temporary)
        wrong = survive(options.kind, options.number, options.seed, folder)
    for line in wrong:
        print(f"WRONG: {line}")
    print(f"{options.kind}: {options.number} {what}, {len(wrong)} faults")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(survive, KINDS, "rounds", __doc__))
