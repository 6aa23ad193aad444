"""What hooks cost in `fit` of a v1 graph, compared with native callbacks there.

    python benchmarks/graph_fit.py --json=graph_fit.json

It measures three pairs after `disable_v2_behavior()`. 1 and 10 hooks that fetch nothing
are compared with as many native callbacks with empty batch methods. A hook that keeps
the loss of every step is compared with a callback that keeps it from its logs.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
if importlib.util.find_spec("tf_keras"):
    # Where `tf.keras` would be Keras 3, which does not train in v1 graphs.
    os.environ["TF_USE_LEGACY_KERAS"] = "1"

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
import tensorflow as tf

import hookbridge as hb
from benchmarks import base
from benchmarks.fit_cases import fit_case
from benchmarks.hook_fetches import EmptyCallback, IdleHook
from benchmarks.overhead_cases import RATE, SIZES, LossCallback, LossHook, Work

v1: Any = tf.compat.v1

PAIRS = (
    ("1 empty callback", "1 idle hook"),
    ("10 empty callbacks", "10 idle hooks"),
    ("callback that keeps the loss", "hook that fetches the loss"),
)


def model(work: Work) -> Any:
    """The network of `bridge_overhead` in the default graph."""
    keras: Any = tf.keras
    inputs, hidden, outputs = SIZES
    layers = [
        keras.layers.Dense(hidden, activation="relu", input_shape=[inputs]),
        keras.layers.Dense(outputs),
    ]
    made = keras.Sequential(layers)
    made.set_weights(work.weights)
    made.compile(
        optimizer=keras.optimizers.legacy.SGD(RATE),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    return made


def cases(work: Work) -> tuple[list[base.Case], LossCallback, LossHook]:
    """All six cases, and the guests that keep the losses."""
    callback, hook = LossCallback(), LossHook()
    guests: list[list[Any]] = [
        [EmptyCallback()],
        hb.as_callbacks([IdleHook()]),
        [EmptyCallback() for _ in range(10)],
        hb.as_callbacks([IdleHook() for _ in range(10)]),
        [callback],
        hb.as_callbacks([hook]),
    ]
    titles = [name for pair in PAIRS for name in pair]
    made = [
        fit_case(title, work, callbacks, model(work))
        for title, callbacks in zip(titles, guests, strict=True)
    ]
    return made, callback, hook


def main(arguments: list[str] | None = None) -> int:
    options = base.parse(str(__doc__), arguments, steps=500)
    v1.disable_v2_behavior()
    work = Work(options.steps)
    made, callback, hook = cases(work)
    timings = base.measure(made, repeats=options.repeats)
    base.check_losses(
        {
            "native": float(np.mean(callback.losses)),
            "bridged": float(np.mean(hook.losses)),
        }
    )
    base.print_facts(options)
    rows = [
        [
            f"{native} / {bridged}",
            f"{timings[native].microsecs:.0f}",
            f"{timings[bridged].microsecs:.0f}",
            f"{timings[bridged].ratio_to(timings[native]):.2f}",
        ]
        for native, bridged in PAIRS
    ]
    header = ["`fit` of a v1 graph", "native, us/step", "bridged, us/step", "ratio"]
    print(base.markdown(rows, header))
    base.write_json(options, timings=timings)
    return 0


if __name__ == "__main__":
    base.one_thread_per_op()
    sys.exit(main())
