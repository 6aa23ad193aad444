"""Microseconds per step, native guests against bridged ones, in both loops.

    python benchmarks/bridge_overhead.py --json=overhead.json

Every guest keeps the loss of every step. In a session the native guest is a hook that
fetches the loss and the bridged guest is a callback that reads `logs["loss"]`; in
`Model.fit` it is the other way round. 0, 1 and 10 guests run. The floors are a
`Session.make_callable` loop and a bare `tf.function` loop. Callbacks that act by epoch
are compared with one `StopAtStepHook`. Two more tables compare session loops: the same
native hooks run in `MonitoredTrainingSession` and in `hb.loops.training_session`, with
batches from a dataset and with batches that are fed. All loops train the same network
from the same weights on the same batches.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import sys
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import hookbridge as hb
from benchmarks import base
from benchmarks.fit_cases import function_case, guest_cases
from benchmarks.overhead_cases import (
    EpochCallback,
    LossCallback,
    LossHook,
    Work,
    callable_case,
    check_guests,
    session_case,
    v1,
)

COUNTS = (0, 1, 10)
LOOP = "MonitoredTrainingSession"
LOOPS = {
    LOOP: v1.train.MonitoredTrainingSession,
    "training_session": hb.loops.training_session,
}


def measure_guests(work: Work, repeats: int, *, in_fit: bool) -> dict[str, base.Timing]:
    """Native and bridged guests in `Model.fit` or a session, and the floor."""
    cases: list[AbstractContextManager[base.Case]] = [
        contextlib.nullcontext(function_case(work)) if in_fit else callable_case(work)
    ]
    kept: list[list[Any]] = []
    for count in COUNTS:
        hooks = [LossHook() for _ in range(count)]
        callbacks = [LossCallback() for _ in range(count)]
        kept += [hooks, callbacks]
        cases += guest_cases(
            work, hooks, callbacks, (f"{count} hooks", f"{count} callbacks"), in_fit
        )
    timings = base.measure_open(cases, repeats=repeats)
    check_guests(kept, work)
    return timings


def measure_loops(work: Work, repeats: int) -> dict[str, base.Timing]:
    """Native hooks in TensorFlow's session loop and in ours, and the floor."""
    cases = [callable_case(work)]
    kept: list[list[Any]] = []
    for count in COUNTS:
        for loop, make in LOOPS.items():
            kept.append([LossHook() for _ in range(count)])
            cases.append(session_case(f"{count} in {loop}", work, kept[-1], make))
    timings = base.measure_open(cases, repeats=repeats)
    check_guests(kept, work)
    return timings


def measure_epochs(work: Work, repeats: int) -> dict[str, base.Timing]:
    """Callbacks that act by epoch, and one hook that needs the global step."""
    never = v1.train.StopAtStepHook(last_step=2**62)
    cases = [session_case("StopAtStepHook", work, [never])]
    kept: dict[str, EpochCallback] = {}
    for count in COUNTS[1:]:
        callbacks = [EpochCallback() for _ in range(count)]
        kept |= {f"{i} of {count}": each for i, each in enumerate(callbacks)}
        hooks = hb.as_hooks(callbacks, steps_per_epoch=work.steps)
        cases.append(session_case(f"{count} by epoch", work, hooks))
    timings = base.measure_open(cases, repeats=repeats)
    base.check_losses({name: each.losses[-1] for name, each in kept.items()})
    return timings


def measure_feeds(work: Work, repeats: int) -> dict[str, base.Timing]:
    """The same hooks in both session loops, with fed batches."""
    cases = [
        session_case(
            f"{count} in {loop}",
            work,
            [LossHook() for _ in range(count)],
            make,
            is_fed=True,
        )
        for count in COUNTS
        for loop, make in LOOPS.items()
    ]
    return base.measure_open(cases, repeats=repeats)


def overhead_rows(timings: dict[str, base.Timing]) -> list[list[str]]:
    """A row for each number of hooks: microseconds over the floor, in both loops."""
    floor = timings["Session.make_callable"]
    rows = []
    for count in COUNTS:
        native, own = (timings[f"{count} in {loop}"].over(floor) for loop in LOOPS)
        ratios = [a / b for a, b in zip(native, own, strict=True)]
        medians = [statistics.median(values) for values in (native, own, ratios)]
        rows.append([str(count), *(f"{m:.0f}" for m in medians[:2])])
        rows[-1].append(f"{medians[2]:.1f}")
    return rows


def main(arguments: list[str] | None = None) -> int:
    options = base.parse(str(__doc__), arguments, steps=500)
    work = Work(options.steps)
    session = measure_guests(work, options.repeats, in_fit=False)
    epochs = measure_epochs(work, options.repeats)
    loops = measure_loops(work, options.repeats)
    feeds = measure_feeds(work, options.repeats)
    fit = measure_guests(work, options.repeats, in_fit=True)
    base.print_facts(options)
    for title, timings, native, bridged, floor in (
        (LOOP, session, "hooks", "callbacks", "Session.make_callable"),
        ("Model.fit", fit, "callbacks", "hooks", "tf.function"),
    ):
        header = [
            "guests",
            f"native {native}, us/step",
            f"bridged {bridged}, us/step",
            "ratio",
        ]
        pairs = [(str(n), f"{n} {native}", f"{n} {bridged}") for n in COUNTS]
        print(f"{title} (floor, {floor}: {timings[floor].microsecs:.0f} us/step)\n")
        print(base.markdown(base.ratio_rows(timings, pairs), header))
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
    names = [f"{loop}, us/step over the floor" for loop in LOOPS]
    print(base.markdown(overhead_rows(loops), ["hooks", *names, "times less"]))
    print("Session loops with batches that are fed\n")
    names = [f"{loop}, us/step" for loop in LOOPS]
    one, other = LOOPS
    pairs = [(str(n), f"{n} in {one}", f"{n} in {other}") for n in COUNTS]
    print(base.markdown(base.ratio_rows(feeds, pairs), ["hooks", *names, "ratio"]))
    base.write_json(
        options, session=session, epochs=epochs, feeds=feeds, loops=loops, fit=fit
    )
    return 0


if __name__ == "__main__":
    base.one_thread_per_op()
    sys.exit(main())
