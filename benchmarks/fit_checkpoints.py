"""What `CheckpointSaverHook` costs in `fit`, compared with `tf.train.Checkpoint`.

    python benchmarks/fit_checkpoints.py --json=checkpoints.json
    python benchmarks/fit_checkpoints.py --variables=1 --megabytes=1024

A model whose step computes nothing is fitted in three ways: without checkpoints; with a
callback that makes a `tf.train.Checkpoint` of all its variables and saves it at the
beginning and at the end; and with the hook, which saves at the same two moments. The
table shows what the last two need more than the first: CPU time, and peak memory.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
import tensorflow as tf

import hookbridge as hb
from benchmarks import base

v1: Any = tf.compat.v1
keras: Any = tf.keras
STEPS = 2
BARE, NATIVE, HOOK = "no checkpoints", "tf.train.Checkpoint", "CheckpointSaverHook"


class Holder(keras.Model):  # type: ignore[misc]
    """A model that has variables and computes nothing with them.

    Args:
      count: how many variables.
      size: the number of elements of each.
    """

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

    def __init__(self, directory: str) -> None:
        super().__init__()
        self._directory = directory

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
        self._manager.save(STEPS)


def callbacks(case: str, directory: str) -> list[Any]:
    """The callbacks that a case passes to `fit`, new in each call."""
    if case == BARE:
        return []
    if case == NATIVE:
        return [NativeCheckpoints(directory)]
    return hb.as_callbacks([v1.train.CheckpointSaverHook(directory, save_steps=STEPS)])


def _status(key: str) -> float:
    """A number of `/proc/self/status`, in MB."""
    for line in Path("/proc/self/status").read_text("utf-8").splitlines():
        if line.startswith(f"{key}:"):
            return int(line.split()[1]) / 1024
    raise KeyError(key)


def run(model: Any, case: str, count: int) -> tuple[float, float]:
    """One fit: its seconds, and its peak memory minus the memory before it.

    Args:
      model: a `Holder`.
      case: the name of the case.
      count: the least number of variables in a checkpoint.
    """
    directory = tempfile.mkdtemp()
    guests = callbacks(case, directory)
    x = np.ones([STEPS, 1], "float32")
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5", "utf-8")  # forgets the peak
    before = _status("VmRSS")
    secs = -base.clock()
    model.fit(x, x, batch_size=1, verbose=0, callbacks=guests)
    secs += base.clock()
    peak = _status("VmHWM") - before
    saved = list(Path(directory).glob("*.index"))
    held = [len(tf.train.list_variables(str(p)[: -len(".index")])) for p in saved]
    shutil.rmtree(directory)
    if len(saved) != (0 if case == BARE else 2) or min(held, default=count) < count:
        raise AssertionError(f"{case} has saved {held} variables in {saved}")
    return secs, peak


def measure(count: int, megabytes: float, repeats: int) -> dict[str, Any]:
    """All cases in turn on one model; the first repeat counts separately."""
    model = Holder(count, max(1, int(megabytes * 2**20 / 4 / count)))
    model.compile("sgd", "mse", jit_compile=False)
    found: dict[str, list[tuple[float, float]]] = {BARE: [], NATIVE: [], HOOK: []}
    first: dict[str, tuple[float, float]] = {}
    for repeat in range(repeats + 1):
        for case in found if repeat % 2 == 0 else reversed(found):
            sample = run(model, case, count)
            if repeat:
                found[case].append(sample)
            else:
                first[case] = sample
    return {
        "first": first,
        "later": found,
        "cost": {
            case: [
                statistics.median(own[i] - bare[i] for own, bare in pairs)
                for i in (0, 1)
            ]
            for case in (NATIVE, HOOK)
            for pairs in [list(zip(found[case], found[BARE], strict=True))]
        },
    }


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n")[0])
    parser.add_argument("--variables", type=int, default=1000)
    parser.add_argument("--megabytes", type=float, default=4, help="of all variables")
    parser.add_argument("--repeats", type=int, default=7, help="fits of each case")
    parser.add_argument("--json", help="file to write the results to")
    options = parser.parse_args(arguments)
    if options.variables < 1 or options.repeats < 1 or options.megabytes <= 0:
        parser.error("--variables, --megabytes and --repeats have to be positive")
    base.use_clock("cpu")
    v1.logging.set_verbosity(v1.logging.ERROR)
    print(", ".join(f"{key} {value}" for key, value in base.machine().items()))
    result = measure(options.variables, options.megabytes, options.repeats)
    cost = result["cost"]
    rows = [
        [case, f"{1e3 * cost[case][0]:.0f}", f"{cost[case][1]:.1f}"]
        for case in (NATIVE, HOOK)
    ]
    rows.append(["ratio", f"{cost[HOOK][0] / cost[NATIVE][0]:.2f}", ""])
    title = f"{options.variables} variables, {options.megabytes:g} MB"
    print(base.markdown(rows, [title, "CPU ms for 2 saves", "memory, MB"]))
    if options.json:
        content = {"machine": base.machine(), **result}
        Path(options.json).write_text(json.dumps(content, indent=1) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    base.one_thread_per_op()
    sys.exit(main())
