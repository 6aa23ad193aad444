"""A clock for time limits that also hold on a busy machine.

A process that waits for a time-out leaves the cores idle. A process that is slow
because others use the cores does not. So this clock counts only the time in which the
cores have nothing to do.
"""

from __future__ import annotations

import os
import time


def idle_secs() -> float:
    """Seconds in which the cores, on average, had nothing to do.

    All processes of a machine get the same value, which grows at most as fast as real
    time. On a system without `/proc/stat` it is the time of the monotonic clock.
    """
    try:
        with open("/proc/stat") as file:
            names = [line.partition(" ")[0] for line in file]
            file.seek(0)
            idle_ticks = int(file.readline().split()[4])
    except OSError:
        return time.monotonic()
    cores = sum(name.startswith("cpu") for name in names) - 1
    return idle_ticks / os.sysconf("SC_CLK_TCK") / cores
