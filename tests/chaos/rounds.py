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
import contextlib
import json
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "helpers"))

from cluster_processes import job as started
from fork_server import ForkServer, fork_server

TASKS = {
    "one": ("chief 0", "ps 0"),
    "async": ("chief 0", "worker 0", "ps 0"),
    "sync": ("chief 0", "worker 0", "ps 0"),
    "fit": ("chief 0", "worker 0", "worker 1", "ps 0"),
}
STEPS = 200
PLACES = ("saving", "saved", "step", "epoch", "validation", "begin")
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
# What the weights come to, and how far those of several workers may be from it.
TRUTH, TOLERANCE = (1.0, -2.0, 0.5), 0.1


class Job:
    """A job of `job.py`, one of `TASKS`, which can be started several times."""

    def __init__(
        self, kind: str, folder: Path, seed: int, server: ForkServer, steps: int
    ) -> None:
        self.kind, self.folder, self._server = kind, folder, server
        self._steps = steps
        self._random = random.Random(seed)

    def run(self, *, disturbed: bool) -> list[str]:
        """Starts all tasks, then waits for their end, or kills one and the others.

        Returns a line for each fault that was found.
        """
        step, allowed = self._expected()
        before = {path.stem: len(self._journal(path)) for path in self._journals()}
        victim = self._random.choice(TASKS[self.kind])
        death = self._death(victim) if disturbed else ""
        options = (f"kind={self.kind}", f"steps={self._steps}")
        with started(
            *(self.folder, "job.py", *options),
            tasks=TASKS[self.kind],
            own={victim: [f"death={death}"]} if death else {},
            server=self._server,
        ) as it:
            if not disturbed:
                self.what = "undisturbed"
                codes = set(it.wait().values())
                wrong = [] if codes == {0} else [f"exit codes {codes} without a fault"]
                return wrong + self._wrong_begins(before, step, allowed)
            if death:
                self.what = f"chief dies at {death}"
                it.until(lambda: victim in it.ended, self.what)
            else:
                kill = self._random.choice(SIGNALS)
                moment = self._random.randrange(self._steps // 3)
                self.what = f"{kill.name} to {victim} after {moment} events"
                moment += len(it.events("chief 0"))
                it.until(
                    lambda: len(it.events("chief 0")) > moment or "chief 0" in it.ended,
                    self.what,
                )
                time.sleep(self._random.uniform(0, 0.05))
                with contextlib.suppress(ProcessLookupError):
                    it.send(victim, kill)
                time.sleep(self._random.uniform(0, 1))
        return self._wrong_begins(before, step, allowed)

    def _death(self, victim: str) -> str:
        """The place where the chief kills itself, or nothing for a signal."""
        if victim != "chief 0" or self._random.random() >= 0.6:
            return ""
        place = self._random.choice(PLACES)
        return f"{place}:{1 if place == 'begin' else self._random.randint(1, 3)}"

    @property
    def is_over(self) -> bool:
        return (self.folder / "final.json").exists()

    def final(self) -> Any:
        """The weights and the states of the callbacks at the end."""
        return json.loads((self.folder / "final.json").read_text())

    def _journals(self) -> list[Path]:
        return sorted(self.folder.glob("*.jsonl"))

    def _journal(self, path: Path) -> list[Any]:
        return [json.loads(line) for line in path.read_text().splitlines()]

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
        for entry in self._journal(self.folder / "chief_0.jsonl"):
            what = entry["event"]
            if what == "saving" and entry["step"] == step:
                found = [entry]
            elif found and what == "begin":
                found.append(None)
            elif found and found[-1] is not None:
                steps = sum(each["event"] == "step" for each in found)
                is_later = what == "saving" or steps + (what == "step") > 1
                found.append(None if is_later else entry)
        return step, [each for each in found if each is not None]

    def _wrong_begins(
        self, before: dict[str, int], step: int, allowed: list[Any]
    ) -> list[str]:
        """Compares the state in which each task began with that of the checkpoint."""
        wrong = []
        for path in self._journals():
            task = path.stem
            new = self._journal(path)[before.get(task, 0) :]
            began = next((entry for entry in new if entry["event"] == "begin"), None)
            if began is None or not allowed or step == 0:
                continue
            others_step = task != "chief_0" or self.kind in ("async", "sync")
            if began["step"] < step or (began["step"] > step and not others_step):
                wrong.append(f"{task}: began at step {began['step']}, not {step}")
            if began["epoch"] < step // 10:
                wrong.append(f"{task}: epoch {began['epoch']} at step {began['step']}")
            if not any(_close(began["rate"], each["rate"]) for each in allowed):
                rates = sorted({each["rate"] for each in allowed if each["rate"]})
                wrong.append(f"{task}: rate {began['rate']}, expected one of {rates}")
            states = [each["state"] for each in allowed]
            if began["state"] not in states:
                wrong.append(f"{task}: state {began['state']}, expected one {states}")
        return wrong


def _close(a: float | None, b: float | None) -> bool:
    return b is None or (a is not None and abs(a - b) <= 1e-6 * abs(b))


def far_from_truth(final: Any) -> list[str]:
    """A line if the weights of several workers are none of an undisturbed job."""
    far = max(abs(a - b) for a, b in zip(final["weight"], TRUTH, strict=True))
    return [] if far < TOLERANCE else [f"final weights {final['weight']}, not {TRUTH}"]


def survive(
    kind: str,
    rounds: int,
    seed: int,
    folder: Path,
    server: ForkServer,
    steps: int = STEPS,
) -> list[str]:
    """Disturbs a job for some rounds; returns what was wrong, a line for each fault."""

    def new(name: str, seed: int) -> Job:
        return Job(kind, folder / name, seed, server, steps)

    calm = new("calm", seed)
    # Several workers never make the same steps twice.
    wrong = calm.run(disturbed=False) if kind == "one" else []

    def compared() -> list[str]:
        if not job.is_over:
            return ["the job came to no end"]
        if kind != "one":
            return far_from_truth(job.final())
        # A task that dies between a save and the later events of the same step loses
        # these events. So `Counter` may be behind, but the weights may not.
        ours, theirs = job.final(), calm.final()
        same = ours["weight"] == theirs["weight"]
        return [] if same else [f"final {ours}, undisturbed {theirs}"]

    job, generation, survived = new("job0", seed), 0, 0
    for number in range(rounds):
        found = job.run(disturbed=True)
        survived += not found
        print(f"round {number + 1}: {job.what}: {'; '.join(found) or 'ok'}", flush=True)
        wrong += found
        if job.is_over:
            wrong += compared()
            generation += 1
            job = new(f"job{generation}", seed + generation)
    wrong += [*job.run(disturbed=False), *compared()]
    print(f"{kind}: {survived} of {rounds} rounds survived", flush=True)
    return wrong


def main(
    survive: Callable[[str, int, int, Path, ForkServer], list[str]],
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
    with tempfile.TemporaryDirectory() as temporary, fork_server() as server:
        folder = Path(options.folder or temporary)
        wrong = survive(options.kind, options.number, options.seed, folder, server)
    for line in wrong:
        print(f"WRONG: {line}")
    print(f"{options.kind}: {options.number} {what}, {len(wrong)} faults")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(survive, tuple(TASKS), "rounds", __doc__))
