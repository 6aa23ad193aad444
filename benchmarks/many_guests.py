"""What one more guest costs when there are many already, in both loops.

    python benchmarks/many_guests.py --clock=cpu

0, 1, 10 and 100 guests run: idle ones that override nothing, and guests that read the
loss of every step. Native guests are compared with guests of the other loop. The cost
of one guest is the difference between 100 guests and none, divided by 100.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tensorflow as tf

import hookbridge as hb
from benchmarks import base
from benchmarks.fit_cases import fit_case
from benchmarks.overhead_cases import LossCallback, LossHook, Work, session_case, v1

COUNTS = (0, 1, 10, 100)


class IdleHook(v1.train.SessionRunHook):  # type: ignore[misc, name-defined]
    """Overrides nothing."""


class IdleCallback(tf.keras.callbacks.Callback):  # type: ignore[misc]
    """Overrides nothing."""


# Kind of guest: (hook, callback).
KINDS: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "idle": (IdleHook, IdleCallback),
    "reads the loss": (LossHook, LossCallback),
}


def measure_session(work: Work, repeats: int) -> dict[str, base.Timing]:
    """Hooks and bridged callbacks in `MonitoredTrainingSession`."""
    with contextlib.ExitStack() as stack:
        cases = []
        for kind, (hook, callback) in KINDS.items():
            for count in COUNTS:
                hooks = [hook() for _ in range(count)]
                callbacks = [callback() for _ in range(count)]
                bridged = hb.as_hooks(callbacks, steps_per_epoch=work.steps)
                for side, guests in (("native", hooks), ("bridged", bridged)):
                    name = f"{kind}, {side}: {count}"
                    cases.append(stack.enter_context(session_case(name, work, guests)))
        return base.measure(cases, repeats=repeats)


def measure_fit(work: Work, repeats: int) -> dict[str, base.Timing]:
    """Callbacks and bridged hooks in `Model.fit`."""
    cases = []
    for kind, (hook, callback) in KINDS.items():
        for count in COUNTS:
            callbacks = [callback() for _ in range(count)]
            bridged = hb.as_callbacks([hook() for _ in range(count)])
            for side, guests in (("native", callbacks), ("bridged", bridged)):
                cases.append(fit_case(f"{kind}, {side}: {count}", work, guests))
    return base.measure(cases, repeats=repeats)


def marginal(timings: dict[str, base.Timing], kind: str, side: str) -> float:
    """Microseconds per step of one guest among 100."""
    few, many = (timings[f"{kind}, {side}: {n}"] for n in (COUNTS[0], COUNTS[-1]))
    return statistics.median(many.over(few)) / COUNTS[-1]


def rows(timings: dict[str, base.Timing]) -> list[list[str]]:
    """A row for each kind of guest and side."""
    return [
        [
            f"{kind}, {side}",
            *(f"{timings[f'{kind}, {side}: {n}'].microsecs:.0f}" for n in COUNTS),
            f"{marginal(timings, kind, side):.2f}",
        ]
        for kind in KINDS
        for side in ("native", "bridged")
    ]


def main(arguments: list[str] | None = None) -> int:
    options = base.parse(str(__doc__), arguments, steps=300)
    work = Work(options.steps)
    session = measure_session(work, options.repeats)
    fit = measure_fit(work, options.repeats)
    base.print_facts(options)
    header = [f"{n} guests, us/step" for n in COUNTS]
    for title, timings in (("MonitoredTrainingSession", session), ("Model.fit", fit)):
        print(base.markdown(rows(timings), [title, *header, "one of 100, us/step"]))
    base.write_json(options, session=session, fit=fit)
    return 0


if __name__ == "__main__":
    base.one_thread_per_op()
    sys.exit(main())
