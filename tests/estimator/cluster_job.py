"""One process of an Estimator's job; started by `test_clusters.py`.

TF_CONFIG=... python tests/estimator/cluster_job.py REPORT STRATEGY MODEL_DIR STEPS
"""

from __future__ import annotations

import functools
import json
import os
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


class Together(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
    """Chief and worker wait for each other, so that both see each epoch.

    Neither ends a run before the other has ended as many less one, or its training.
    """

    def __init__(self, folder: Path) -> None:
        task = json.loads(os.environ["TF_CONFIG"])["task"]["type"]
        other = {"chief": "worker", "worker": "chief"}.get(task, "")
        self._own, self._of_other = folder / f"{task}.runs", folder / f"{other}.runs"

    def after_run(self, run_context: Any, run_values: Any) -> None:
        with self._own.open("a") as runs:
            runs.write("r")
        while not self._other_has(self._own.stat().st_size - 1):
            time.sleep(0.02)

    def _other_has(self, runs: int) -> bool:
        noted = self._of_other.read_text() if self._of_other.exists() else ""
        return noted.endswith("e") or len(noted) >= max(runs, 1)

    def end(self, session: Any) -> None:
        with self._own.open("a") as runs:
            runs.write("e")


STRATEGIES: dict[str, Any] = {
    "none": lambda: None,
    "multi_worker": tf.distribute.experimental.MultiWorkerMirroredStrategy,
    "parameter_server": (tf.compat.v1.distribute.experimental.ParameterServerStrategy),
}


def main() -> None:
    """Trains, evaluates if this process has to, and writes the report."""
    # A worker would look for its chief every 30 seconds.
    manager: Any = tf.compat.v1.train.SessionManager
    manager.__init__ = functools.partialmethod(manager.__init__, recovery_wait_secs=0.5)
    report, name, model_dir = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    log = EventLog()
    hooks: list[Any] = [RecordingHook(log, "hook")]
    changes: dict[str, Any] = {"train_distribute": STRATEGIES[name]()}
    if name == "none":
        together = Together(report.parent)
        guests = [*hooks, together, RecordingCallback(log, "callback")]
        hooks = hb.as_hooks(guests, steps_per_epoch=10)
        changes = {"save_checkpoints_steps": 20}
    hb.estimator.train_and_evaluate(
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
    }
    report.write_text(json.dumps(notes))


if __name__ == "__main__":
    main()
