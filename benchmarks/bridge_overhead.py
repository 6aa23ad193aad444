"""Microseconds per step, native guests against bridged ones, in both loops.

    python benchmarks/bridge_overhead.py --json=overhead.json

Every guest does the same: it keeps the loss of every step. In a session that is a
hook that fetches the loss (native) or a callback that reads `logs["loss"]`
(bridged); in `Model.fit` it is the other way round. 0, 1 and 10 of them run, and
the floors are a `Session.make_callable` loop and a bare `tf.function` loop. Callbacks
that act by epoch are compared with one `StopAtStepHook`. Two more tables are about the
session loop itself: the same native hooks in `MonitoredTrainingSession` and in
`hb.loops.training_session`, with batches from a dataset and with batches that are fed.
All loops train the same network from the same weights on the same batches.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import hookbridge as hb
from benchmarks import base
from benchmarks.fit_cases import fit_case, function_case
from benchmarks.overhead_cases import (
    EpochCallback,
    LossCallback,
    LossHook,
    Work,
    callable_case,
    check_guests,
    fed_case,
    session_case,
    v1,
)
from benchmarks.overhead_tables import COUNTS, loop_rows, overhead_rows, rows_of

LOOPS = (
    ("MonitoredTrainingSession", v1.train.MonitoredTrainingSession),
    ("training_session", hb.loops.training_session),
)


def measure_session(work: Work, repeats: int) -> dict[str, base.Timing]:
    """(a) and the session's floor."""
    with contextlib.ExitStack() as stack:
        cases = [stack.enter_context(callable_case(work))]
        kept: list[list[Any]] = []
        for count in COUNTS:
            hooks = [LossHook() for _ in range(count)]
            callbacks = [LossCallback() for _ in range(count)]
            kept += [hooks, callbacks]
            bridged = hb.as_hooks(callbacks, steps_per_epoch=work.steps)
            for name, guests in (("hooks", hooks), ("callbacks", bridged)):
                cases.append(
                    stack.enter_context(session_case(f"{count} {name}", work, guests))
                )
        timings = base.measure(cases, repeats=repeats)
    check_guests(kept, work)
    return timings


def measure_loops(work: Work, repeats: int) -> dict[str, base.Timing]:
    """Native hooks in TensorFlow's session loop and in ours, and the floor."""
    with contextlib.ExitStack() as stack:
        cases = [stack.enter_context(callable_case(work))]
        kept: list[list[Any]] = []
        for count in COUNTS:
            for loop, make in LOOPS:
                hooks = [LossHook() for _ in range(count)]
                kept.append(hooks)
                case = session_case(f"{count} in {loop}", work, hooks, make)
                cases.append(stack.enter_context(case))
        timings = base.measure(cases, repeats=repeats)
    check_guests(kept, work)
    return timings


def measure_epochs(work: Work, repeats: int) -> dict[str, base.Timing]:
    """Callbacks that act by epoch, and one hook that needs the global step."""
    with contextlib.ExitStack() as stack:
        never = v1.train.StopAtStepHook(last_step=2**62)
        cases = [stack.enter_context(session_case("StopAtStepHook", work, [never]))]
        kept: list[list[Any]] = []
        for count in COUNTS[1:]:
            kept.append([EpochCallback() for _ in range(count)])
            hooks = hb.as_hooks(kept[-1], steps_per_epoch=work.steps)
            name = f"{count} by epoch"
            cases.append(stack.enter_context(session_case(name, work, hooks)))
        timings = base.measure(cases, repeats=repeats)
    base.check_losses(
        {f"{i} of {len(k)}": c.losses[-1] for k in kept for i, c in enumerate(k)}
    )
    return timings


def measure_feeds(work: Work, repeats: int) -> dict[str, base.Timing]:
    """The same hooks in both session loops, with batches that are fed."""
    with contextlib.ExitStack() as stack:
        cases = []
        for count in COUNTS:
            for loop, make in LOOPS:
                hooks = [LossHook() for _ in range(count)]
                case = fed_case(f"{count} in {loop}", work, hooks, make)
                cases.append(stack.enter_context(case))
        return base.measure(cases, repeats=repeats)


def measure_fit(work: Work, repeats: int) -> dict[str, base.Timing]:
    """(b) and the floor of `fit`."""
    cases = [function_case(work)]
    kept: list[list[Any]] = []
    for count in COUNTS:
        hooks = [LossHook() for _ in range(count)]
        callbacks = [LossCallback() for _ in range(count)]
        kept += [hooks, callbacks]
        cases += [
            fit_case(f"{count} callbacks", work, callbacks),
            fit_case(f"{count} hooks", work, hb.as_callbacks(hooks)),
        ]
    timings = base.measure(cases, repeats=repeats)
    check_guests(kept, work)
    return timings


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int, default=500, help="steps in a stretch")
    parser.add_argument("--repeats", type=int, default=9, help="stretches timed")
    parser.add_argument(
        "--clock",
        choices=base.CLOCKS,
        default="wall",
        help="`cpu` counts this process's threads only: for a machine in other use",
    )
    parser.add_argument("--json", help="file to write the results to")
    options = parser.parse_args(arguments)
    if options.steps < 1 or options.repeats < 1:
        parser.error("--steps and --repeats have to be 1 or more")

    base.use_clock(options.clock)
    work = Work(options.steps)
    session = measure_session(work, options.repeats)
    epochs = measure_epochs(work, options.repeats)
    loops = measure_loops(work, options.repeats)
    feeds = measure_feeds(work, options.repeats)
    fit = measure_fit(work, options.repeats)
    facts = base.machine()
    print(", ".join(f"{key} {value}" for key, value in facts.items()))
    print(
        f"median of {options.repeats} repeats of {options.steps} steps, "
        f"{options.clock} time\n"
    )
    for title, timings, native, bridged, floor in (
        (
            "MonitoredTrainingSession",
            session,
            "hooks",
            "callbacks",
            "Session.make_callable",
        ),
        ("Model.fit", fit, "callbacks", "hooks", "tf.function"),
    ):
        header = [
            "guests",
            f"native {native}, us/step",
            f"bridged {bridged}, us/step",
            "ratio",
        ]
        print(f"{title} (floor, {floor}: {timings[floor].microsecs:.0f} us/step)\n")
        print(base.markdown(rows_of(timings, native, bridged), header))
    stop = epochs["StopAtStepHook"]
    print("Callbacks that act by epoch, against one StopAtStepHook\n")
    rows = [
        [t.name, f"{t.microsecs:.0f}", f"{t.ratio_to(stop):.2f}"]
        for t in epochs.values()
    ]
    print(base.markdown(rows, ["guests", "us/step", "ratio"]))
    floor_us = loops["Session.make_callable"].microsecs
    print(
        f"Session loops (over the floor, Session.make_callable: {floor_us:.0f} us/step)"
        "\n"
    )
    header = [
        "hooks",
        "MonitoredTrainingSession, us/step over the floor",
        "hb.loops.training_session, us/step over the floor",
        "times less",
    ]
    print(base.markdown(overhead_rows(loops), header))
    print("Session loops with batches that are fed\n")
    names = [f"{loop}, us/step" for loop, _ in LOOPS]
    print(base.markdown(loop_rows(feeds), ["hooks", *names, "ratio"]))
    if options.json:
        base.write_json(
            options.json,
            {
                "machine": facts,
                "clock": options.clock,
                "steps": options.steps,
                "repeats": options.repeats,
                "session": {k: t._asdict() for k, t in session.items()},
                "epochs": {k: t._asdict() for k, t in epochs.items()},
                "feeds": {k: t._asdict() for k, t in feeds.items()},
                "loops": {k: t._asdict() for k, t in loops.items()},
                "fit": {k: t._asdict() for k, t in fit.items()},
            },
        )
    return 0


if __name__ == "__main__":
    base.one_thread_per_op()
    sys.exit(main())
