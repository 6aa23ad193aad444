"""One process of an Estimator's job; started by `test_clusters.py`.

[TF_CONFIG=...] python tests/estimator/cluster_job.py REPORT STRATEGY MODEL_DIR STEPS
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1])]

import estimator_scenarios as scenarios  # noqa: E402
import tensorflow as tf  # noqa: E402

import hookbridge as hb  # noqa: E402
from hookbridge.testing import EventLog, RecordingCallback, RecordingHook  # noqa: E402


class Slow(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
    """Makes steps slow enough for all tasks to take part."""

    def after_run(self, run_context: Any, run_values: Any) -> None:
        time.sleep(0.02)


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
    "none": lambda: None,
    "one_device": lambda: tf.distribute.OneDeviceStrategy("cpu:0"),
    "mirrored": two_cpus,
    "multi_worker": tf.distribute.experimental.MultiWorkerMirroredStrategy,
    "parameter_server": (tf.compat.v1.distribute.experimental.ParameterServerStrategy),
}


def main() -> None:
    """Trains, evaluates if this process has to, and writes the report."""
    report, name, model_dir = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    log = EventLog()
    hooks: list[Any] = [RecordingHook(log, "hook")]
    changes: dict[str, Any] = {"train_distribute": STRATEGIES[name]()}
    if name == "none":
        guests = [*hooks, Slow(), RecordingCallback(log, "callback")]
        hooks = hb.as_hooks(guests, steps_per_epoch=100)
        changes = {"save_checkpoints_steps": 100}
    result = hb.estimator.train_and_evaluate(
        scenarios.custom(model_dir, **changes),
        hb.estimator.TrainSpec(
            scenarios.input_fn(), max_steps=int(sys.argv[4]), hooks=hooks
        ),
        scenarios.evaluation(),
    )
    counts = log.counts("hook")
    notes = {
        "steps": counts.get("after_run", 0),
        "ended": counts.get("end", 0) == 1,
        "events": [record.event for record in log.of("callback")],
        "loss": float(result[0]["loss"]) if result else None,
    }
    report.write_text(json.dumps(notes))


if __name__ == "__main__":
    main()
