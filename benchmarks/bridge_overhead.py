"""Microseconds per step, native guests against bridged ones, in both loops.

    python -m benchmarks.bridge_overhead --json=overhead.json
    python -m benchmarks.bridge_overhead --clock=cpu --counts 100 1000

0, 1 and 10 guests (or `--counts`) run: some keep the loss of every step, idle ones
override nothing, and some act seldom and not in a timed step. Native guests are
compared with those of the other loop: in a session callbacks, in `fit` hooks. Floors
are a `Session.make_callable` loop and a bare `tf.function` loop. Callbacks that act by
epoch are compared with one `StopAtStepHook`. Two more tables compare session loops: the
same native hooks run in `MonitoredTrainingSession` and in `hb.loops.training_session`,
with batches from a dataset and with batches that are fed. All loops train the same
network from the same weights on the same batches.
"""

from __future__ import annotations

import contextlib
import itertools
import statistics
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import tensorflow as tf

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

COUNTS = (1, 10)
READS = "reads the loss"
# Kind of guest: (hook, callback).
KINDS: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    READS: (LossHook, LossCallback),
    "idle": (v1.train.SessionRunHook, tf.keras.callbacks.Callback),
    "acts seldom": (
        lambda: v1.train.LoggingTensorHook(["loss:0"], every_n_iter=10**9),
        EpochCallback,
    ),
}
SIDES = ("native", "bridged")
LOOP = "MonitoredTrainingSession"
LOOPS = {
    LOOP: v1.train.MonitoredTrainingSession,
    "training_session": hb.loops.training_session,
}


def measure_guests(
    work: Work, counts: Sequence[int], repeats: int, *, in_fit: bool
) -> dict[str, base.Timing]:
    """Native and bridged guests in `Model.fit` or a session, and the floor."""
    cases: list[AbstractContextManager[base.Case]] = [
        contextlib.nullcontext(function_case(work)) if in_fit else callable_case(work)
    ]
    kept: list[list[Any]] = []
    for kind, count in [(READS, 0), *itertools.product(KINDS, counts)]:
        hooks, callbacks = ([make() for _ in range(count)] for make in KINDS[kind])
        kept += [hooks, callbacks] if kind == READS else []
        names = (name_of(count, kind, "hooks"), name_of(count, kind, "callbacks"))
        cases += guest_cases(work, hooks, callbacks, names, in_fit)
    timings = base.measure_open(cases, repeats=repeats)
    check_guests(kept, work)
    return timings


def name_of(count: int, kind: str, guests: str) -> str:
    """The case of so many hooks or callbacks of a kind."""
    return f"{count} {guests}, {kind}" if count else f"0 {guests}"


def guest_rows(
    timings: dict[str, base.Timing], counts: Sequence[int], guests: Sequence[str]
) -> list[list[str]]:
    """A row for each kind and count; `guests` are the native and the bridged ones.

    The last two cells say what one guest adds to a step without guests.
    """
    cases = [(READS, 0), *itertools.product(KINDS, counts)]
    pairs = [
        (f"{count}, {kind}", *(name_of(count, kind, each) for each in guests))
        for kind, count in cases
    ]
    rows = base.ratio_rows(timings, pairs)
    for row, (kind, count) in zip(rows, cases, strict=True):
        for each in guests:
            more = timings[name_of(count, kind, each)].over(timings[f"0 {each}"])
            row.append(f"{statistics.median(more) / max(count, 1):.2f}")
    return rows


def measure_loops(
    work: Work, counts: Sequence[int], repeats: int, *, is_fed: bool = False
) -> dict[str, base.Timing]:
    """Native hooks in TensorFlow's session loop and in ours, and the floor."""
    cases = [callable_case(work)]
    kept: list[list[Any]] = []
    for count in (0, *counts):
        for loop, make in LOOPS.items():
            kept.append([LossHook() for _ in range(count)])
            name = f"{count} in {loop}"
            cases.append(session_case(name, work, kept[-1], make, is_fed=is_fed))
    timings = base.measure_open(cases, repeats=repeats)
    check_guests(kept, work)
    return timings


def measure_epochs(
    work: Work, counts: Sequence[int], repeats: int
) -> dict[str, base.Timing]:
    """Callbacks that act by epoch, and one hook that needs the global step."""
    never = v1.train.StopAtStepHook(last_step=2**62)
    cases = [session_case("StopAtStepHook", work, [never])]
    kept: dict[str, EpochCallback] = {}
    for count in counts:
        callbacks = [EpochCallback() for _ in range(count)]
        kept |= {f"{i} of {count}": each for i, each in enumerate(callbacks)}
        hooks = hb.as_hooks(callbacks, steps_per_epoch=work.steps)
        cases.append(session_case(f"{count} by epoch", work, hooks))
    timings = base.measure_open(cases, repeats=repeats)
    base.check_losses({name: each.losses[-1] for name, each in kept.items()})
    return timings


def overhead_rows(
    timings: dict[str, base.Timing], counts: Sequence[int]
) -> list[list[str]]:
    """A row for each number of hooks: microseconds over the floor, in both loops."""
    floor = timings["Session.make_callable"]
    rows = []
    for count in (0, *counts):
        native, own = (timings[f"{count} in {loop}"].over(floor) for loop in LOOPS)
        ratios = [a / b for a, b in zip(native, own, strict=True)]
        medians = [statistics.median(values) for values in (native, own, ratios)]
        rows.append([str(count), *(f"{m:.0f}" for m in medians[:2])])
        rows[-1].append(f"{medians[2]:.1f}")
    return rows


def main(arguments: list[str] | None = None) -> None:
    parser = base.parser(str(__doc__), steps=500)
    parser.add_argument("--counts", type=int, nargs="+", default=COUNTS)
    options = base.options_of(parser, arguments)
    v1.logging.set_verbosity(v1.logging.ERROR)
    work, counts = Work(options.steps), options.counts
    session = measure_guests(work, counts, options.repeats, in_fit=False)
    epochs = measure_epochs(work, counts, options.repeats)
    loops = measure_loops(work, counts, options.repeats)
    feeds = measure_loops(work, counts, options.repeats, is_fed=True)
    fit = measure_guests(work, counts, options.repeats, in_fit=True)
    base.print_facts(options)
    for title, timings, guests, floor in (
        (LOOP, session, ("hooks", "callbacks"), "Session.make_callable"),
        ("Model.fit", fit, ("callbacks", "hooks"), "tf.function"),
    ):
        native, bridged = (
            f"{side} {each}" for side, each in zip(SIDES, guests, strict=True)
        )
        header = ["guests", f"{native}, us/step", f"{bridged}, us/step", "ratio"]
        header += [f"one of the {side}, us" for side in SIDES]
        print(f"{title} (floor, {floor}: {timings[floor].microsecs:.0f} us/step)\n")
        print(base.markdown(guest_rows(timings, counts, guests), header))
    stop = epochs["StopAtStepHook"]
    print("Callbacks that act by epoch, against one StopAtStepHook\n")
    rows = [
        [t.name, f"{t.microsecs:.0f}", f"{t.ratio_to(stop):.2f}"]
        for t in epochs.values()
    ]
    print(base.markdown(rows, ["guests", "us/step", "ratio"]))
    print("Session loops, over the floor of Session.make_callable\n")
    names = [f"{loop}, us/step" for loop in LOOPS]
    print(base.markdown(overhead_rows(loops, counts), ["hooks", *names, "times less"]))
    print("Session loops with batches that are fed\n")
    pairs = [(str(n), *(f"{n} in {loop}" for loop in LOOPS)) for n in (0, *counts)]
    print(base.markdown(base.ratio_rows(feeds, pairs), ["hooks", *names, "ratio"]))
    base.write_json(
        options, session=session, epochs=epochs, feeds=feeds, loops=loops, fit=fit
    )


if __name__ == "__main__":
    base.one_thread_per_op()
    main()
