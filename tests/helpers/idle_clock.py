"""A clock for time limits that also hold on a busy machine.

A process that waits for a time-out leaves the cores idle. A process that is slow
because others use the cores does not. So this clock counts only the time in which the
cores have nothing to do.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

CONTAINER = Path("/sys/fs/cgroup")


def idle_secs() -> float:
    """Seconds in which the cores that the tests may use, on average, had nothing to do.

    All processes of a test run get the same value, which grows about as fast as real
    time at most. On a system without `/proc/stat` it is the time of the monotonic
    clock.
    """
    with contextlib.suppress(OSError):
        return _unused_secs(CONTAINER) or _idle_secs()
    return time.monotonic()


def _idle_secs() -> float:
    """The idle time of the cores on which this process may run."""
    cores = {f"cpu{number}" for number in os.sched_getaffinity(0)}
    lines = map(str.split, Path("/proc/stat").read_text().splitlines())
    ticks = [int(words[4]) for words in lines if words[0] in cores]
    return sum(ticks) / os.sysconf("SC_CLK_TCK") / len(ticks)


def _unused_secs(container: Path) -> float | None:
    """How long a container could have used its cores; None if it may use all."""
    try:
        quota, period = (container / "cpu.max").read_text().split()
        if quota == "max":
            return None
        used = dict(map(str.split, (container / "cpu.stat").read_text().splitlines()))
    except OSError:
        return None
    return time.monotonic() - int(used["usage_usec"]) / 1e6 * int(period) / int(quota)
