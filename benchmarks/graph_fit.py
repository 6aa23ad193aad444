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

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
if importlib.util.find_spec("tf_keras"):
    # `tf.keras` is Keras 2: Keras 3 does not train in v1 graphs.
    os.environ["TF_USE_LEGACY_KERAS"] = "1"

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
import tensorflow as tf

import hookbridge as hb
from benchmarks import base
from benchmarks.fit_cases import fit_case, idle_cases
from benchmarks.overhead_cases import LossCallback, LossHook, Work


def main(arguments: list[str] | None = None) -> int:
    options = base.parse(str(__doc__), arguments, steps=500)
    tf.compat.v1.disable_v2_behavior()
    work = Work(options.steps)
    callback, hook = LossCallback(), LossHook()
    cases = [
        *idle_cases(work),
        fit_case("callback that keeps the loss", work, [callback]),
        fit_case("hook that fetches the loss", work, hb.as_callbacks([hook])),
    ]
    timings = base.measure(cases, repeats=options.repeats)
    losses = {"native": callback.losses, "bridged": hook.losses}
    base.check_losses({name: float(np.mean(kept)) for name, kept in losses.items()})
    base.report_pairs("`fit` of a v1 graph", options, timings)
    return 0


if __name__ == "__main__":
    base.one_thread_per_op()
    sys.exit(main())
