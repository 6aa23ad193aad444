"""One process of an Estimator with a distribution strategy.

[TF_CONFIG=...] python tests/estimator/strategy_job.py STRATEGY MODEL_DIR REPORT
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1])]

import estimator_scenarios as scenarios  # noqa: E402
import tensorflow as tf  # noqa: E402

import hookbridge as hb  # noqa: E402

STEPS = 8


def two_cpus() -> Any:
    """A mirrored strategy over two logical CPUs."""
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0],
        [tf.config.LogicalDeviceConfiguration()] * 2,
    )
    # The default reduction never ends between CPUs of one graph.
    reduction = tf.distribute.ReductionToOneDevice()
    return tf.distribute.MirroredStrategy(["cpu:0", "cpu:1"], reduction)


STRATEGIES: dict[str, Any] = {
    "one_device": lambda: tf.distribute.OneDeviceStrategy("cpu:0"),
    "mirrored": two_cpus,
    "multi_worker": tf.distribute.experimental.MultiWorkerMirroredStrategy,
    "parameter_server": (tf.compat.v1.distribute.experimental.ParameterServerStrategy),
}


class Counter(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
    """Counts this process's steps."""

    def __init__(self) -> None:
        self.steps = 0

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self.steps += 1


def main() -> None:
    """Trains, evaluates if this process has to, and writes the report."""
    report, name, model_dir = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    hook = Counter()
    estimator = scenarios.custom(model_dir, train_distribute=STRATEGIES[name]())
    result = hb.estimator.train_and_evaluate(
        estimator,
        hb.estimator.TrainSpec(scenarios.input_fn(), max_steps=STEPS, hooks=[hook]),
        hb.estimator.EvalSpec(
            scenarios.input_fn(repeat=False), start_delay_secs=0, throttle_secs=0
        ),
    )
    loss = float(result[0]["loss"]) if result else None
    report.write_text(json.dumps({"steps": hook.steps, "loss": loss}))


if __name__ == "__main__":
    main()
