"""One task of a small Estimator cluster; started by `test_cluster.py`.

TF_CONFIG=... python tests/estimator/cluster_job.py MODEL_DIR MAX_STEPS REPORT
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


class Counter(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
    """Counts this task's steps and makes them slow enough for all to take part."""

    def __init__(self) -> None:
        self.steps = 0
        self.ended = False

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self.steps += 1
        time.sleep(0.02)

    def end(self, session: Any) -> None:
        self.ended = True


class Epochs(tf.keras.callbacks.Callback):  # type: ignore[misc]
    """Notes the events of a callback."""

    def __init__(self) -> None:
        super().__init__()
        self.events: list[str] = []

    def on_train_begin(self, logs: Any = None) -> None:
        self.events.append("train_begin")

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.events.append(f"epoch_end {epoch}")

    def on_train_end(self, logs: Any = None) -> None:
        self.events.append("train_end")


def main() -> None:
    """Runs the task that `TF_CONFIG` names and writes what its guests saw."""
    report, model_dir, max_steps = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    hook, callback = Counter(), Epochs()
    estimator = scenarios.custom(Path(model_dir), save_checkpoints_steps=100)
    result = hb.estimator.train_and_evaluate(
        estimator,
        hb.estimator.TrainSpec(
            scenarios.input_fn(),
            max_steps=max_steps,
            hooks=hb.as_hooks([hook, callback], steps_per_epoch=100),
        ),
        hb.estimator.EvalSpec(
            scenarios.input_fn(repeat=False), start_delay_secs=0, throttle_secs=0
        ),
    )
    evaluated = result[0] if result else None
    report.write_text(
        json.dumps(
            {
                "steps": hook.steps,
                "ended": hook.ended,
                "events": callback.events,
                "global_step": None if not evaluated else int(evaluated["global_step"]),
            }
        )
    )


if __name__ == "__main__":
    main()
