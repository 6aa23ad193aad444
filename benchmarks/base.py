"""Flags, timing and output that all benchmarks share.

Compared cases run in turn within each repeat, so a machine that slows down slows all
of them. The first repeat is dropped: it traces, allocates and fills caches. Times are
compared only if the losses agree; otherwise the cases did not do the same work.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib
import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

# Before TensorFlow looks for devices.
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

CLOCKS: dict[str, Callable[[], float]] = {
    "wall": time.perf_counter,
    "cpu": time.process_time,
}
_clock = CLOCKS["wall"]
Result = TypeVar("Result")


def use_clock(name: str) -> None:
    """Chooses the clock of all further measurements: a key of `CLOCKS`."""
    global _clock
    _clock = CLOCKS[name]


def clock() -> float:
    """Seconds on the chosen clock."""
    return _clock()


class Sample(NamedTuple):
    """One timed stretch of steps, and the training loss at its end."""

    secs_per_step: float
    loss: float


class Case(NamedTuple):
    """One thing to measure; each stretch of `run` has the same number of steps."""

    name: str
    run: Callable[[], Sample]


class Timing(NamedTuple):
    """The result of one case: microseconds for one step, and the last loss.

    `microsecs` is the median, `low` the fastest and `high` the slowest of `repeats`.
    """

    name: str
    microsecs: float
    low: float
    high: float
    loss: float
    repeats: tuple[float, ...]

    def ratio_to(self, other: Timing) -> float:
        """Median of the ratios within each repeat, where both saw the same machine."""
        pairs = zip(self.repeats, other.repeats, strict=True)
        return statistics.median(own / base for own, base in pairs)

    def over(self, floor: Timing) -> list[float]:
        """Microseconds above `floor`, within each repeat."""
        pairs = zip(self.repeats, floor.repeats, strict=True)
        return [own - base for own, base in pairs]


class UnequalLossesError(AssertionError):
    """Raised when compared cases have different losses."""


def in_turn(
    cases: Mapping[str, Callable[[], Result]], repeats: int
) -> dict[str, list[Result]]:
    """Runs all cases in turn, `repeats` times."""
    results: dict[str, list[Result]] = {name: [] for name in cases}
    for repeat in range(repeats):
        # The order alternates, so that no case of a pair is always the second.
        for name in list(cases)[:: 1 if repeat % 2 == 0 else -1]:
            gc.collect()  # garbage of the previous case
            results[name].append(cases[name]())
    return results


def measure(
    cases: Sequence[Case], *, repeats: int, tolerance: float = 1e-4
) -> dict[str, Timing]:
    """Runs all cases in turn, `repeats` times and once more to warm up."""
    samples = in_turn({case.name: case.run for case in cases}, repeats + 1)
    return timings_of(samples, tolerance=tolerance)


def timings_of(
    samples: Mapping[str, Sequence[Sample]], *, tolerance: float = 1e-4
) -> dict[str, Timing]:
    """The timings without the first repeat, if the losses of each repeat agree."""
    for repeat in zip(*samples.values(), strict=True):
        losses = (sample.loss for sample in repeat)
        check_losses(dict(zip(samples, losses, strict=True)), tolerance=tolerance)
    return {name: _timing(name, found[1:]) for name, found in samples.items()}


def measure_open(
    contexts: Iterable[AbstractContextManager[Case]], *, repeats: int
) -> dict[str, Timing]:
    """Like `measure`, for cases that need something open, such as a session."""
    with contextlib.ExitStack() as stack:
        cases = [stack.enter_context(context) for context in contexts]
        return measure(cases, repeats=repeats)


def _timing(name: str, samples: Sequence[Sample]) -> Timing:
    microsecs = [1e6 * s.secs_per_step for s in samples]
    return Timing(
        name,
        statistics.median(microsecs),
        min(microsecs),
        max(microsecs),
        samples[-1].loss,
        tuple(microsecs),
    )


def check_losses(losses: Mapping[str, float], *, tolerance: float = 1e-4) -> None:
    """Raises an error if a loss is far from the first one, relative to its size."""
    first, reference = next(iter(losses.items()))
    for name, loss in losses.items():
        if not abs(loss - reference) <= tolerance * abs(reference):
            raise UnequalLossesError(
                f"`{name}` has the loss {loss}, `{first}` has {reference}: they did "
                "not do the same work, so their times are not compared."
            )


def one_thread_per_op() -> None:
    """Keeps TensorFlow from spreading small ops over threads, which adds noise.

    Call this before TensorFlow does anything.
    """
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)


def machine() -> dict[str, Any]:
    """The processor and the versions that the numbers depend on."""
    import tensorflow as tf

    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "tensorflow": tf.__version__,
        "keras": importlib.import_module("keras").__version__,
    }


def ratio_rows(
    timings: Mapping[str, Timing], pairs: Sequence[tuple[str, ...]]
) -> list[list[str]]:
    """A row for each `(first cell, case, other case)`: microseconds and the ratio."""
    rows = []
    for cell, first, second in pairs:
        one, other = timings[first], timings[second]
        microsecs = [f"{t.microsecs:.0f}" for t in (one, other)]
        rows.append([cell, *microsecs, f"{other.ratio_to(one):.2f}"])
    return rows


def markdown(rows: Sequence[Sequence[Any]], header: Sequence[str]) -> str:
    """A Markdown table whose columns are right-aligned, except for the first."""
    lines = [
        "| " + " | ".join(header) + " |",
        "|---" + "|---:" * (len(header) - 1) + "|",
    ]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def parser(
    doc: str, *, steps: int, repeats: int = 9, clock: str = "wall"
) -> argparse.ArgumentParser:
    """The flags that every benchmark has, with their defaults."""
    made = argparse.ArgumentParser(description=doc.split("\n")[0])
    made.add_argument("--steps", type=int, default=steps, help="steps in a stretch")
    made.add_argument("--repeats", type=int, default=repeats, help="stretches timed")
    made.add_argument(
        "--clock",
        choices=CLOCKS,
        default=clock,
        help="`cpu` counts the threads of this process only: for a busy machine",
    )
    made.add_argument("--json", help="file to write the results to")
    return made


def options_of(parser: argparse.ArgumentParser, arguments: Sequence[str] | None) -> Any:
    """Reads the flags of a benchmark and chooses the clock."""
    options = parser.parse_args(arguments)
    if options.steps < 1 or options.repeats < 1:
        parser.error("--steps and --repeats have to be 1 or more")
    use_clock(options.clock)
    return options


def parse(doc: str, arguments: Sequence[str] | None, *, steps: int) -> Any:
    """Reads the flags of a benchmark that has none of its own."""
    return options_of(parser(doc, steps=steps), arguments)


def print_facts(options: Any) -> None:
    """Prints what the following tables depend on."""
    print(", ".join(f"{key} {value}" for key, value in machine().items()))
    print(
        f"median of {options.repeats} repeats of {options.steps} steps, "
        f"{options.clock} time\n"
    )


def report_pairs(title: str, options: Any, timings: Mapping[str, Timing]) -> None:
    """Prints and writes cases that were measured in pairs: native, then bridged."""
    names = list(timings)
    pairs = zip(names[::2], names[1::2], strict=True)
    rows = ratio_rows(timings, [(f"{a} / {b}", a, b) for a, b in pairs])
    print_facts(options)
    print(markdown(rows, [title, "native, us/step", "bridged, us/step", "ratio"]))
    write_json(options, timings=timings)


def write_json(options: Any, **timings: Mapping[str, Timing]) -> None:
    """Writes the timings to the file that `--json` names, if any."""
    parts = {
        part: {name: timing._asdict() for name, timing in found.items()}
        for part, found in timings.items()
    }
    write_results(options, **parts)


def write_results(options: Any, **parts: Any) -> None:
    """Writes values that JSON can hold to the file that `--json` names, if any."""
    if not options.json:
        return
    content = {
        "machine": machine(),
        "clock": options.clock,
        "steps": options.steps,
        "repeats": options.repeats,
        **parts,
    }
    Path(options.json).write_text(json.dumps(content, indent=1) + "\n", "utf-8")
