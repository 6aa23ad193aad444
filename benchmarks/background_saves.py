"""How long a save stalls a step: `BackgroundSaverHook` beside `CheckpointSaverHook`.

    python -m benchmarks.background_saves --megabytes=1024

A model whose step adds to all its variables is fitted without checkpoints, with
`CheckpointSaverHook` and with `BackgroundSaverHook`; the hooks save in the middle. The
table has the longest step (from the start of a batch to that of the next one) above the
median of the others, the longest call of the hook in those steps, the seconds of the
whole `fit`, and the peak of memory above that of the `fit` without checkpoints.
"""

from __future__ import annotations

import functools
import gc
import shutil
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

import hookbridge as hb
from benchmarks import base
from benchmarks.fit_checkpoints import Holder, memory_mb

v1: Any = tf.compat.v1
keras: Any = tf.keras
BARE, NATIVE, BACKGROUND = (
    "no checkpoints",
    "CheckpointSaverHook",
    "BackgroundSaverHook",
)


class Adding(Holder):
    """Each step updates every variable where it is, and takes no memory for it."""

    def __init__(self, count: int, size: int) -> None:
        super().__init__(count, size)
        self.change = tf.fill([size], 1e-3)

    def train_step(self, data: Any) -> dict[str, Any]:
        for variable in self.kept:
            variable.assign_add(self.change)
        return super().train_step(data)


class Begins(keras.callbacks.Callback):  # type: ignore[misc]
    """Notes when each batch begins; the second one waits for the first save's files.

    Otherwise the next save would wait for them, in a training of a few steps.
    """

    def __init__(self, directory: str, saves: bool) -> None:
        super().__init__()
        self.times: list[float] = []
        self._folder, self._saves = Path(directory), saves

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        while batch == 1 and self._saves and not any(self._folder.glob("*.index")):
            time.sleep(0.1)
        self.times.append(base.clock())


def timed(hook: Any, secs: list[float]) -> Any:
    """The hook, which notes how long each `after_run` takes: there it saves."""
    after_run = hook.after_run

    def note(*args: Any) -> None:
        began = base.clock()
        after_run(*args)
        secs.append(base.clock() - began)

    hook.after_run = note
    return hook


def run(model: Any, case: str, steps: int) -> tuple[float, float, float, float]:
    """Seconds of the longest step above the median, the hook and `fit`, and peak MB."""
    directory = tempfile.mkdtemp()
    makes = {
        NATIVE: v1.train.CheckpointSaverHook,
        BACKGROUND: hb.checkpoints.BackgroundSaverHook,
    }
    in_hook: list[float] = []
    hooks = []
    if case in makes:
        hooks.append(timed(makes[case](directory, save_steps=steps), in_hook))
    begins = Begins(directory, bool(hooks))
    x = np.ones([2 * steps, 1], "float32")
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5", "utf-8")  # forgets the peak
    before = memory_mb("VmRSS")
    secs = -base.clock()
    model.fit(*(x, x, 1), verbose=0, callbacks=[begins, *hb.as_callbacks(hooks)])
    secs += base.clock()
    peak = memory_mb("VmHWM") - before
    shutil.rmtree(directory)
    # Not the first steps, in which the function is traced and the first save made.
    lengths = np.diff(begins.times)[steps // 2 :]
    stall = float(max(lengths) - statistics.median(lengths))
    return stall, max(in_hook[steps // 2 :], default=0.0), secs, peak


def main(arguments: Sequence[str] | None = None) -> None:
    parser = base.parser(str(__doc__), steps=10, repeats=3, clock="wall")
    parser.add_argument("--variables", type=int, default=10)
    parser.add_argument("--megabytes", type=float, default=64, help="of all variables")
    options = base.options_of(parser, arguments)
    if options.variables < 1 or options.megabytes <= 0 or options.steps < 4:
        parser.error("--variables and --megabytes have to be positive, --steps above 3")
    v1.logging.set_verbosity(v1.logging.ERROR)
    base.print_facts(options)
    size = max(1, int(options.megabytes * 2**20 / 4 / options.variables))
    model = Adding(options.variables, size)
    model.compile("sgd", "mse", jit_compile=False)
    cases = {
        case: functools.partial(run, model, case, options.steps)
        for case in (BARE, NATIVE, BACKGROUND)
    }
    found = base.in_turn(cases, options.repeats + 1)
    medians = {
        case: [
            statistics.median(column) for column in zip(*found[case][1:], strict=True)
        ]
        for case in cases
    }
    rows = []
    for case, (stall, in_hook, secs, mb) in medians.items():
        more = mb - medians[BARE][3]
        in_ms = (f"{1e3 * each:.0f}" for each in (stall, in_hook))
        rows.append([case, *in_ms, f"{secs:.2f}", f"{more:.0f}"])
    title = f"{options.variables} variables, {options.megabytes:g} MB"
    head = [title, "ms of stall", "in the hook", "secs of `fit`", "memory, MB"]
    print(base.markdown(rows, head))
    base.write_results(options, found=found)


if __name__ == "__main__":
    main()
