"""One `fit` that tests disturb by signals; the chief's notes go to `EVENTS`.

With `leaves`, the chief ends while its threads still make iterators nobody needs.
The environment may set other `LIMITS`.

TF_CONFIG=... python tests/adapters/parameter_server/faults_job.py EVENTS [leaves]
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
HELPERS = [str(HERE.parent / "helpers"), str(HERE.parents[1] / "helpers")]
sys.path[:0] = [str(HERE), *HELPERS, str(HERE.parents[2])]

import tensorflow as tf  # noqa: E402
from ps_guests import batches, keras, mean_output, model, note  # noqa: E402
from quick_traces import look_often  # noqa: E402

import hookbridge as hb  # noqa: E402
from hookbridge.adapters.parameter_server import exit as ending  # noqa: E402
from hookbridge.jobs.loops.clusters import serve  # noqa: E402

look_often()
serve.LOOK_SECS = 0.2  # so that servers have seen the chief when a test disturbs it
LIMITS = {"EXIT_SECS", "PATIENCE_SECS"}
for limit in LIMITS & os.environ.keys():
    setattr(ending, limit, int(os.environ[limit]))
v1: Any = tf.compat.v1
FOLDER = Path(sys.argv[1]).parent


class Counting(keras.callbacks.Callback):  # type: ignore[misc]
    """Notes every 20th batch and the end; counts all batches."""

    batches = 0

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.batches += 1
        if batch % 20 == 0:
            note(f"batch {batch}", loss=logs["loss"])

    def on_train_end(self, logs: Any = None) -> None:
        note("on_train_end", batches=self.batches)


class Watching(v1.train.SessionRunHook):  # type: ignore[misc]
    """Notes at which global step it starts and ends."""

    def after_create_session(self, session: Any, coord: Any) -> None:
        note("begins", step=int(session.run(v1.train.get_global_step(session.graph))))

    def before_run(self, run_context: Any) -> Any:
        return v1.train.SessionRunArgs("loss:0")

    def end(self, session: Any) -> None:
        note("ends", step=int(session.run(v1.train.get_global_step(session.graph))))


def note_threads() -> None:
    """Notes the threads that still run when the interpreter ends."""
    note("threads", names=[thread.name for thread in threading.enumerate()])


def make_iterators(strategy: Any) -> None:
    """Threads make the iterators, one after another; nobody waits for them."""
    coordinator = tf.distribute.experimental.coordinator.ClusterCoordinator(strategy)
    datasets = coordinator.create_per_worker_dataset(
        tf.function(
            lambda: strategy.distribute_datasets_from_function(
                lambda _: tf.data.Dataset.range(3)
            )
        )
    )
    iterators = [iter(datasets) for _ in range(100)]
    note("leaves", iterators=len(iterators))


def main() -> None:
    config = hb.loops.ClusterConfig.from_environment()
    if config.task_type == "chief":
        note("waits")
        atexit.register(note_threads)  # what is registered first is called last
    strategy = hb.loops.parameter_server_strategy(
        config, lost_secs=float(os.environ.get("LOST_SECS", "600"))
    )
    if sys.argv[2:] == ["leaves"]:
        make_iterators(strategy)
        return
    with strategy.scope():
        made = model(mean_output, 0.0078125)
    saved = str(FOLDER / "saved")
    if tf.train.latest_checkpoint(saved):
        hb.checkpoints.restore(made, saved)
    guests = [
        Counting(),
        Watching(),
        v1.train.CheckpointSaverHook(saved, save_steps=200),
    ]
    try:
        made.fit(
            keras.utils.experimental.DatasetCreator(batches),
            steps_per_epoch=1_000_000,
            callbacks=hb.as_callbacks(guests),
            verbose=0,
        )
    except Exception as e:
        note("failed", type=type(e).__name__, message=str(e))
        raise


if __name__ == "__main__":
    main()
