"""What `CheckpointSaverHook` costs in `fit`, compared with `tf.train.Checkpoint`.

    python -m benchmarks.fit_checkpoints --json=checkpoints.json
    python -m benchmarks.fit_checkpoints --variables=1 --megabytes=1024

A model whose step computes nothing is fitted in three ways: without checkpoints; with a
callback that makes a `tf.train.Checkpoint` of all its variables and saves it at the
beginning and at the end; and with the hook, which saves at the same two moments. The
table shows what the last two need more than the first: CPU time, and peak memory.
"""

from __future__ import annotations

import functools
import gc
import shutil
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

import hookbridge as hb
from benchmarks import base

v1: Any = tf.compat.v1
keras: Any = tf.keras
BARE, NATIVE, HOOK = "no checkpoints", "tf.train.Checkpoint", "CheckpointSaverHook"


class Holder(keras.Model):  # type: ignore[misc]
    """A model that has `count` variables of `size` and computes nothing with them."""

    def __init__(self, count: int, size: int) -> None:
        super().__init__()
        self.kept = [
            self.add_weight(shape=(size,), initializer="zeros", name=f"kept{i}")
            for i in range(count)
        ]
        self.built = True

    def call(self, inputs: Any) -> Any:
        return inputs

    def train_step(self, data: Any) -> dict[str, Any]:
        return {"loss": tf.reduce_mean(data[0])}


class NativeCheckpoints(keras.callbacks.Callback):  # type: ignore[misc]
    """Saves when the hook saves, with TensorFlow's own `CheckpointManager`."""

    def __init__(self, directory: str, steps: int) -> None:
        super().__init__()
        self._directory, self._steps = directory, steps

    def on_train_begin(self, logs: Any = None) -> None:
        optimizer = getattr(self.model.optimizer, "variables", ())
        optimizer = optimizer() if callable(optimizer) else optimizer
        checkpoint = tf.train.Checkpoint(
            # A Keras 3 variable has a `tf.Variable` inside.
            variables=[
                v if isinstance(v, tf.Variable) else v.value
                for v in [*self.model.variables, *optimizer]
            ]
        )
        self._manager = tf.train.CheckpointManager(
            checkpoint, self._directory, max_to_keep=5
        )
        self._manager.save(0)

    def on_train_end(self, logs: Any = None) -> None:
        self._manager.save(self._steps)


def callbacks(case: str, directory: str, steps: int) -> list[Any]:
    """The callbacks that a case passes to `fit`, new in each call."""
    if case == BARE:
        return []
    if case == NATIVE:
        return [NativeCheckpoints(directory, steps)]
    return hb.as_callbacks([v1.train.CheckpointSaverHook(directory, save_steps=steps)])


def memory_mb(key: str) -> float:
    """A number of `/proc/self/status`, such as "VmRSS", in MB."""
    for line in Path("/proc/self/status").read_text("utf-8").splitlines():
        if line.startswith(f"{key}:"):
            return int(line.split()[1]) / 1024
    raise KeyError(key)


def run(model: Any, case: str, count: int, steps: int) -> tuple[float, float]:
    """One fit: its seconds, and its peak memory minus the memory before it.

    Each checkpoint must hold `count` variables or more.
    """
    directory = tempfile.mkdtemp()
    guests = callbacks(case, directory, steps)
    x = np.ones([steps, 1], "float32")
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5", "utf-8")  # forgets the peak
    before = memory_mb("VmRSS")
    secs = -base.clock()
    model.fit(x, x, batch_size=1, verbose=0, callbacks=guests)
    secs += base.clock()
    peak = memory_mb("VmHWM") - before
    saved = list(Path(directory).glob("*.index"))
    held = [len(tf.train.list_variables(str(p)[: -len(".index")])) for p in saved]
    shutil.rmtree(directory)
    if len(saved) != (0 if case == BARE else 2) or min(held, default=count) < count:
        raise AssertionError(f"{case} has saved {held} variables in {saved}")
    return secs, peak


def main(arguments: Sequence[str] | None = None) -> None:
    parser = base.parser(str(__doc__), steps=2, repeats=7, clock="cpu")
    parser.add_argument("--variables", type=int, default=1000)
    parser.add_argument("--megabytes", type=float, default=4, help="of all variables")
    options = base.options_of(parser, arguments)
    count, megabytes = options.variables, options.megabytes
    if count < 1 or megabytes <= 0:
        parser.error("--variables and --megabytes have to be positive")
    v1.logging.set_verbosity(v1.logging.ERROR)
    base.print_facts(options)
    model = Holder(count, max(1, int(megabytes * 2**20 / 4 / count)))
    model.compile("sgd", "mse", jit_compile=False)
    cases = {
        case: functools.partial(run, model, case, count, options.steps)
        for case in (BARE, NATIVE, HOOK)
    }
    found = base.in_turn(cases, options.repeats + 1)
    cost = {}
    for case in (NATIVE, HOOK):
        pairs = list(zip(found[case], found[BARE], strict=True))[1:]
        cost[case] = [statistics.median(a[i] - b[i] for a, b in pairs) for i in (0, 1)]
    rows = [
        [case, f"{1e3 * secs:.0f}", f"{mb:.1f}"] for case, (secs, mb) in cost.items()
    ]
    rows.append(["ratio", f"{cost[HOOK][0] / cost[NATIVE][0]:.2f}", ""])
    title = f"{count} variables, {megabytes:g} MB"
    print(base.markdown(rows, [title, "ms for 2 saves", "memory, MB"]))
    base.write_results(options, found=found, cost=cost)


if __name__ == "__main__":
    base.one_thread_per_op()
    main()
