"""A clock for bounds that hold on a busy machine too.

A process that waits out a time-out leaves the machine idle; one that is slow because
others use the cores does not. So this clock runs with the time in which the cores have
nothing to do: what takes long only because the machine is busy takes no time by it.
"""

from __future__ import annotations

import os
import time


def idle_secs() -> float:
    """Seconds in which the cores, on average, had nothing to do; at most a clock's.

    The same for all processes of a machine. Where the system does not tell, it is a
    clock's time.
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
