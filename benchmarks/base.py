"""Timing that all benchmarks share: alternate, repeat, check, then compare.

Cases that are compared run in turn within each repeat, so that a machine that
slows down slows them all. The first repeat is dropped: it traces, allocates and
fills caches. Losses have to agree before any time is looked at, or the cases did
not do the same work.
"""

from __future__ import annotations

import gc
import importlib.metadata
import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

CLOCKS: dict[str, Callable[[], float]] = {
    "wall": time.perf_counter,
    "cpu": time.process_time,
}
_clock = CLOCKS["wall"]


def use_clock(name: str) -> None:
    """Chooses the clock of all further measurements: a key of `CLOCKS`."""
    global _clock
    _clock = CLOCKS[name]


def clock() -> float:
    """Seconds on the chosen clock."""
    return _clock()


class Sample(NamedTuple):
    """One timed stretch of steps.

    Attributes:
      secs_per_step: seconds for one step.
      loss: the training loss at the end of the stretch.
    """

    secs_per_step: float
    loss: float


class Case(NamedTuple):
    """One thing to measure.

    Attributes:
      name: as it stands in the results.
      run: runs one stretch of steps, always the same number.
    """

    name: str
    run: Callable[[], Sample]


class Timing(NamedTuple):
    """The result of one case.

    Attributes:
      name: the case.
      microsecs: median over the repeats, for one step.
      low: fastest repeat.
      high: slowest repeat.
      loss: training loss after the last repeat.
      repeats: every repeat, in order.
    """

    name: str
    microsecs: float
    low: float
    high: float
    loss: float
    repeats: tuple[float, ...]

    def ratio_to(self, other: Timing) -> float:
        """Median of the ratios within each repeat: both saw the same machine."""
        pairs = zip(self.repeats, other.repeats, strict=True)
        return statistics.median(own / base for own, base in pairs)

    def over(self, floor: Timing) -> list[float]:
        """Microseconds above `floor`, within each repeat."""
        pairs = zip(self.repeats, floor.repeats, strict=True)
        return [own - base for own, base in pairs]


class UnequalLossesError(AssertionError):
    """Raised when cases that are compared did not compute the same."""


def measure(
    cases: Sequence[Case], *, repeats: int, tolerance: float = 1e-4
) -> dict[str, Timing]:
    """Runs all cases in turn, `repeats` times and once more to warm up.

    Raises:
      UnequalLossesError: in some repeat the losses of two cases differ by more than
        `tolerance`, relative to their size.
    """
    samples: dict[str, list[Sample]] = {case.name: [] for case in cases}
    for repeat in range(repeats + 1):
        # Turn the order around each time: neither of a pair is always the second.
        for case in cases if repeat % 2 == 0 else reversed(cases):
            gc.collect()  # what the case before left behind
            samples[case.name].append(case.run())
        losses = {name: found[-1].loss for name, found in samples.items()}
        check_losses(losses, tolerance=tolerance)
    return {name: _timing(name, found[1:]) for name, found in samples.items()}


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
    """Holds all losses to the first one, relative to its size.

    Raises:
      UnequalLossesError: one differs by more than `tolerance`, or is NaN.
    """
    first, reference = next(iter(losses.items()))
    for name, loss in losses.items():
        if not abs(loss - reference) <= tolerance * abs(reference):
            raise UnequalLossesError(
                f"`{name}` has the loss {loss}, `{first}` has {reference}: they did "
                "not do the same work, so their times are not compared."
            )


def one_thread_per_op() -> None:
    """Keeps TensorFlow from spreading small ops over threads, which is mostly noise.

    Call it before TensorFlow does anything.
    """
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)


def machine() -> dict[str, Any]:
    """What the numbers depend on, without the machine's name."""
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
        "keras": importlib.metadata.version("keras"),
    }


def markdown(rows: Sequence[Sequence[Any]], header: Sequence[str]) -> str:
    """A Markdown table; numbers are right-aligned by the second line."""
    lines = [
        "| " + " | ".join(header) + " |",
        "|---" + "|---:" * (len(header) - 1) + "|",
    ]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def write_json(path: str | os.PathLike[str], content: Mapping[str, Any]) -> None:
    """Writes `content`, readable and in its own order."""
    text = json.dumps(content, indent=1)
    Path(path).write_text(text + "\n", encoding="utf-8")
