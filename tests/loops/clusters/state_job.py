"""One task of a cluster whose callbacks lower the learning rate; it notes each epoch.

TF_CONFIG=... python tests/loops/clusters/state_job.py EVENTS dir=... last_step=...
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "helpers"), str(HERE.parents[2])]

import tensorflow as tf  # noqa: E402
from job_events import EVENTS, OPTIONS, Steps, note  # noqa: E402

import hookbridge as hb  # noqa: E402

v1 = tf.compat.v1


class Epochs(tf.keras.callbacks.Callback):  # type: ignore[misc]
    """Notes the state of the other callbacks as each epoch begins."""

    def __init__(self, stopping: Any) -> None:
        super().__init__()
        self._stopping = stopping

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        rate = float(self.model.optimizer.learning_rate.numpy())
        note("epoch", epoch=epoch, rate=rate, wait=self._stopping.wait)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        # Waits: no step is saved before all workers have restored their state.
        workers = int(OPTIONS.get("wait_for_workers", "0"))
        files = EVENTS.parent.glob
        while sum('"epoch"' in f.read_text() for f in files("*.jsonl")) < workers:
            time.sleep(0.02)


def main() -> None:
    """Runs the task that `TF_CONFIG` names."""
    with hb.loops.SessionCluster(lost_secs=8) as cluster:
        if cluster.is_server:
            cluster.serve()
            return
        with tf.Graph().as_default(), v1.device(cluster.device_setter()):
            weight = v1.get_variable("weight", initializer=1.0)
            loss = tf.identity(weight * weight, name="loss")
            optimizer: Any = v1.train.GradientDescentOptimizer(0.001)
            hooks = []
            if "aggregate" in OPTIONS:
                optimizer = v1.train.SyncReplicasOptimizer(optimizer, 2, 2)
                hooks.append(optimizer.make_session_run_hook(cluster.is_chief))
            step = v1.train.get_or_create_global_step()
            train_op = optimizer.minimize(loss, step)
            callbacks = tf.keras.callbacks
            plateau = callbacks.ReduceLROnPlateau(
                "loss", min_delta=1e6, patience=1, factor=0.9, min_lr=0.0
            )
            stopping = callbacks.EarlyStopping("loss", min_delta=1e6, patience=10**6)
            guests = [plateau, stopping, Epochs(stopping), Steps()]
            last = v1.train.StopAtStepHook(last_step=int(OPTIONS["last_step"]))
            hooks += hb.as_hooks([*guests, last], steps_per_epoch=5)
            with cluster.training_session(
                hooks, checkpoint_dir=OPTIONS["dir"], save_checkpoint_steps=7
            ) as session:
                while not session.should_stop():
                    session.run(train_op)


if __name__ == "__main__":
    main()
