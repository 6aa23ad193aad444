"""Measures in separate processes, which need not import TensorFlow again.

What happens once in a process (its first trace, its peak of memory) cannot be measured
twice in it. A process that has imported TensorFlow but has not used it is forked for
each measurement, so each one starts fresh.
"""

from __future__ import annotations

import functools
import gc
import json
import os
import resource
import sys
import traceback
from collections.abc import Callable, Mapping
from typing import Any

from benchmarks import base


def in_child(measure: Callable[[], Any]) -> Any:
    """Calls a function in a fork of this process; JSON must hold its result."""
    read, write = os.pipe()
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            gc.freeze()
            result = json.dumps(measure())
            with os.fdopen(write, "w") as pipe:
                pipe.write(result)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(write)
    with os.fdopen(read) as pipe:
        content = pipe.read()
    if os.waitpid(pid, 0)[1] or not content:
        raise RuntimeError("A process of the benchmark failed.")
    return json.loads(content)


def measured(
    cases: Mapping[str, Callable[[], Any]], repeats: int
) -> dict[str, list[dict[str, float]]]:
    """Runs all cases in turn, each in a process of its own."""
    forks = {name: functools.partial(in_child, run) for name, run in cases.items()}
    return base.in_turn(forks, repeats)


def peak_mb() -> float:
    """The most memory that this process has had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
