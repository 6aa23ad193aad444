"""Measures in separate processes, which need not import TensorFlow again.

What happens once in a process (its first trace, its peak of memory) cannot be measured
twice in it. A process that has imported TensorFlow but has not used it is forked for
each measurement, so each one starts fresh.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import sys
import traceback
from collections.abc import Callable, Mapping
from typing import Any


def in_child(measure: Callable[[], Any]) -> Any:
    """Calls a function in a fork of this process and returns its result.

    Args:
      measure: returns a value that JSON can hold.

    Raises:
      RuntimeError: `measure` failed; its traceback is on the standard error stream.
    """
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
    found: dict[str, list[dict[str, float]]] = {name: [] for name in cases}
    for repeat in range(repeats):
        for name in list(cases)[:: 1 if repeat % 2 == 0 else -1]:
            found[name].append(in_child(cases[name]))
    return found


def peak_mb() -> float:
    """The most memory that this process has had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
