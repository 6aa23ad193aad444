"""What guests cost as a cluster grows: messages, bytes and time of each process.

    python -m benchmarks.scaling --json=scaling.json --plot=scaling.svg

It starts clusters of 1, 2, 4 and 8 workers with one parameter server on this machine.
Each cluster trains asynchronously for a fixed time: for both loops, without guests and
with 5 hooks and 5 callbacks that want the loss of every step. In the middle of the run
it counts global steps, the CPU time of each process, and the packets and bytes on the
loopback device. All traffic between the processes goes through that device, so no other
process may use it meanwhile. The end is timed too: from the chief's last step until all
processes have ended.

Many workers need pauses between their steps, or they do not get to their steps at all:

    python -m benchmarks.scaling --loops session --workers 64 --warm_up=240 --pause=2
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks import base
from hookbridge.jobs.loops.tasks.local_cluster import LocalCluster

JOB = "benchmarks.scaling_job"
LOOPS = ("session", "fit")
WORKERS = (1, 2, 4, 8)
BARE, GUESTS = "no guests", "10 guests"
COLUMNS = {
    "steps_per_sec": "global steps/s",
    "packets_per_step": "packets/step",
    "bytes_per_step": "bytes/step",
    "chief_cpu_us_per_own_step": "chief's CPU, us per step that it makes",
    "end_secs": "end, s",
}


def measure(
    loop: str, workers: int, guests: str, options: argparse.Namespace
) -> dict[str, float]:
    """Runs one cluster from start to end; returns what one global step cost.

    The chief is one of the workers in a session cluster, the coordinator in `fit`.
    """
    with tempfile.TemporaryDirectory() as folder:
        cluster = LocalCluster(
            num_workers=workers - (loop == "session"), num_ps=1, chief=True
        )
        job = {"loop": loop, "guests": guests == GUESTS, "secs": options.secs}
        job |= {"warm_up": options.warm_up, "pause": options.pause}
        command = [sys.executable, "-m", JOB, folder, json.dumps(job)]
        output = io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            code = cluster.run(command)
        ended = time.time()
        if code:
            raise RuntimeError(f"{loop}, {workers} workers:\n{output.getvalue()}")
        parts = {p.stem: json.loads(p.read_text()) for p in Path(folder).iterdir()}
    chief = parts["chief_0"]
    steps = chief["steps"]
    return {
        "steps_per_sec": steps / chief["secs"],
        "packets_per_step": chief["packets"] / steps,
        "bytes_per_step": chief["bytes"] / steps,
        "chief_cpu_us_per_own_step": 1e6 * chief["cpu"] / chief["own_steps"],
        "end_secs": ended - chief["until"],
    }


def table(cases: dict[str, Any]) -> str:
    """The results of one loop as Markdown."""
    rows = [
        [f"{workers}, {guests}", *(f"{found[key]:.1f}" for key in COLUMNS)]
        for workers, pair in cases.items()
        for guests, found in pair.items()
    ]
    return base.markdown(rows, ["workers", *COLUMNS.values()])


def plot(results: dict[str, Any], path: str) -> None:
    """Draws bytes, packets and the chief's time over the number of workers."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    measures = list(COLUMNS)[1:4]
    figure, axes = pyplot.subplots(1, len(measures), figsize=(12, 3.6))
    for axis, key in zip(axes, measures, strict=True):
        for loop, color in zip(LOOPS, ("tab:blue", "tab:orange"), strict=True):
            for guests, style in ((BARE, "--"), (GUESTS, "-")):
                points = [
                    (int(n), pair[guests][key]) for n, pair in results[loop].items()
                ]
                axis.plot(
                    *zip(*points, strict=True),
                    style,
                    color=color,
                    marker="o",
                    label=f"{loop}, {guests}",
                )
        axis.set_xlabel("workers")
        axis.set_ylabel(COLUMNS[key])
        axis.set_xscale("log", base=2)
        axis.set_xticks(WORKERS, [str(n) for n in WORKERS])
        axis.set_ylim(bottom=0)
    axes[0].legend(fontsize="small")
    figure.tight_layout()
    figure.savefig(path)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--workers", type=int, nargs="*", default=WORKERS)
    parser.add_argument("--loops", nargs="*", default=LOOPS, choices=LOOPS)
    parser.add_argument("--secs", type=float, default=8.0, help="measured, per run")
    parser.add_argument(
        "--warm_up", type=float, default=3.0, help="seconds until it is measured"
    )
    parser.add_argument(
        "--pause", type=float, default=0.0, help="seconds between a worker's steps"
    )
    parser.add_argument("--json", help="file for the results")
    parser.add_argument("--plot", help="SVG file; needs matplotlib")
    options = parser.parse_args(arguments)
    results: dict[str, Any] = {}
    for loop in options.loops:
        for workers in options.workers:
            results.setdefault(loop, {})[str(workers)] = {
                guests: measure(loop, workers, guests, options)
                for guests in (BARE, GUESTS)
            }
        print(f"{loop}\n\n{table(results[loop])}")
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=2) + "\n")
    if options.plot:
        plot(results, options.plot)


if __name__ == "__main__":
    main()
