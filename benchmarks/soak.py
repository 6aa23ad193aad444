"""Whether a long training stays flat: memory, open files and threads of the process.

    python -m benchmarks.soak --secs=3600

Each case trains in a process of its own for `--secs`, in epochs of `--steps`: a session
and `fit`, without guests and with ten guests of the other loop that read the loss of
each step and save their state. The table compares the end of the first tenth with the
end; what grows without guests too is TensorFlow's own.
"""

from __future__ import annotations

import functools
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tensorflow as tf

import hookbridge as hb
from benchmarks import base
from benchmarks.child import in_child
from benchmarks.fit_cases import keras_model
from benchmarks.overhead_cases import LossCallback, LossHook, Work, graph_step, v1

GUESTS = {"no guests": 0, "10 guests": 10}
WARM = 0.1  # of the time: what is made once is made by then
Facts = dict[str, float]


def facts() -> Facts:
    """Memory in MB, open files and threads of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return {
        "mb": pages * os.sysconf("SC_PAGE_SIZE") / 1e6,
        "files": len(os.listdir("/proc/self/fd")),
        "threads": len(os.listdir("/proc/self/task")),
    }


class Watch:
    """Called after each epoch; says when the time is up."""

    def __init__(self, secs: float, lists: list[list[float]]) -> None:
        self._began, self._secs, self._lists = time.monotonic(), secs, lists
        self.epochs = 0
        self.first: Facts = {}
        self.last: Facts = {}

    def is_over(self) -> bool:
        for kept in self._lists:
            kept.clear()  # what guests keep is no leak
        self.epochs += 1
        passed = time.monotonic() - self._began
        self.last = facts()
        if not self.first and passed > WARM * self._secs:
            self.first = self.last
        return passed > self._secs


class Ends(tf.keras.callbacks.Callback):  # type: ignore[misc]
    """Ends `fit` when the time is up."""

    def __init__(self, watch: Watch) -> None:
        super().__init__()
        self._watch = watch

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.model.stop_training = self._watch.is_over()


def run_session(work: Work, secs: float, count: int, folder: str) -> Watch:
    """A session whose checkpoints have the state of the guests."""
    guests = [LossCallback() for _ in range(count)]
    watch = Watch(secs, [guest.losses for guest in guests])
    hooks = hb.as_hooks(guests, steps_per_epoch=work.steps) if guests else []
    with tf.Graph().as_default():
        train_op, _ = graph_step(work)
        with v1.train.MonitoredTrainingSession(
            hooks=hooks,
            checkpoint_dir=folder,
            save_checkpoint_steps=10 * work.steps,
            log_step_count_steps=None,
            save_summaries_steps=None,
            save_summaries_secs=None,
        ) as session:
            while True:
                for _ in range(work.steps):
                    session.run(train_op)
                if watch.is_over():
                    return watch


def run_fit(work: Work, secs: float, count: int, folder: str) -> Watch:
    """`fit` with a hook that saves checkpoints among the guests."""
    guests = [LossHook() for _ in range(count)]
    watch = Watch(secs, [guest.losses for guest in guests])
    hooks: list[Any] = [*guests]
    if guests:
        steps = 10 * work.steps
        hooks.append(v1.train.CheckpointSaverHook(folder, save_steps=steps))
    keras_model(work).fit(
        work.dataset(),
        epochs=10**9,
        verbose=0,
        callbacks=[*(hb.as_callbacks(hooks) if hooks else ()), Ends(watch)],
    )
    return watch


LOOPS: dict[str, Callable[[Work, float, int, str], Watch]] = {
    "session": run_session,
    "fit": run_fit,
}


def measure(loop: str, guests: str, steps: int, secs: float) -> dict[str, Any]:
    """One training; what the process held after a tenth of it and at the end."""
    with tempfile.TemporaryDirectory() as folder:
        watch = LOOPS[loop](Work(steps), secs, GUESTS[guests], folder)
    return {"epochs": watch.epochs, "first": watch.first, "last": watch.last}


def main(arguments: list[str] | None = None) -> None:
    parser = base.parser(str(__doc__), steps=100, repeats=1)
    parser.add_argument("--secs", type=float, default=60.0, help="of each case")
    parser.add_argument("--loops", nargs="*", default=list(LOOPS), choices=LOOPS)
    options = base.options_of(parser, arguments)
    v1.logging.set_verbosity(v1.logging.ERROR)
    found: dict[str, dict[str, Any]] = {loop: {} for loop in options.loops}
    rows = []
    for loop in options.loops:
        for guests in GUESTS:
            case = (loop, guests, options.steps, options.secs)
            result = in_child(functools.partial(measure, *case))
            found[loop][guests] = result
            cells = [
                f"{result['first'][key]:.0f} to {result['last'][key]:.0f}"
                for key in ("mb", "files", "threads")
            ]
            rows.append([f"{loop}, {guests}", result["epochs"], *cells])
    print(base.markdown(rows, ["loop", "epochs", "MB", "files", "threads"]))
    base.write_results(options, **found)


if __name__ == "__main__":
    main()
