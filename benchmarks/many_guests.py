"""What one more guest costs when there are many already, in both loops.

    python benchmarks/many_guests.py --clock=cpu
    python benchmarks/many_guests.py --clock=cpu --counts 0 1000

0, 1, 10 and 100 guests run: idle ones that override nothing, guests that act seldom and
not in a timed step, and guests that read the loss of every step. Native guests are
compared with guests of the other loop. The cost of one guest is the difference between
the largest count and none, divided by that count.
"""

from __future__ import annotations

import os
import statistics
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tensorflow as tf

from benchmarks import base
from benchmarks.fit_cases import guest_cases
from benchmarks.overhead_cases import EpochCallback, LossCallback, LossHook, Work, v1

COUNTS = (0, 1, 10, 100)
SIDES = ("native", "bridged")


def seldom_hook() -> Any:
    """A hook of TensorFlow's own that acts in the first step only."""
    return v1.train.LoggingTensorHook(["loss:0"], every_n_iter=10**9)


# Kind of guest: (hook, callback).
KINDS: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "idle": (v1.train.SessionRunHook, tf.keras.callbacks.Callback),
    "acts seldom": (seldom_hook, EpochCallback),
    "reads the loss": (LossHook, LossCallback),
}


def measure(
    work: Work, counts: Sequence[int], repeats: int, *, in_fit: bool
) -> dict[str, base.Timing]:
    """Native and bridged guests in `Model.fit` or a session."""
    cases = []
    for kind, (hook, callback) in KINDS.items():
        sides = [f"{kind}, {side}" for side in SIDES[:: -1 if in_fit else 1]]
        for count in counts:
            hooks = [hook() for _ in range(count)]
            callbacks = [callback() for _ in range(count)]
            names = (f"{sides[0]}: {count}", f"{sides[1]}: {count}")
            cases += guest_cases(work, hooks, callbacks, names, in_fit)
    return base.measure_open(cases, repeats=repeats)


def marginal(few: base.Timing, many: base.Timing, count: int) -> float:
    """Microseconds per step of one guest among `count`."""
    return statistics.median(many.over(few)) / count


def rows(timings: dict[str, base.Timing], counts: Sequence[int]) -> list[list[str]]:
    """A row for each kind of guest and side."""
    return [
        [
            f"{kind}, {side}",
            *(f"{timing.microsecs:.0f}" for timing in of_kind),
            f"{marginal(of_kind[0], of_kind[-1], counts[-1]):.2f}",
        ]
        for kind in KINDS
        for side in SIDES
        for of_kind in [[timings[f"{kind}, {side}: {n}"] for n in counts]]
    ]


def main(arguments: list[str] | None = None) -> int:
    parser = base.parser(str(__doc__), steps=300)
    parser.add_argument("--counts", type=int, nargs="+", default=COUNTS)
    options = base.options_of(parser, arguments)
    v1.logging.set_verbosity(v1.logging.ERROR)
    work, counts = Work(options.steps), options.counts
    session, fit = (
        measure(work, counts, options.repeats, in_fit=in_fit)
        for in_fit in (False, True)
    )
    base.print_facts(options)
    header = [f"{n} guests, us/step" for n in counts]
    header.append(f"one of {counts[-1]}, us/step")
    for title, timings in (("MonitoredTrainingSession", session), ("Model.fit", fit)):
        print(base.markdown(rows(timings, counts), [title, *header]))
    base.write_json(options, session=session, fit=fit)
    return 0


if __name__ == "__main__":
    base.one_thread_per_op()
    sys.exit(main())
