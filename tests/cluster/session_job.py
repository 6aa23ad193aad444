"""One task of a small between-graph cluster; started by the tests beside it.

TF_CONFIG=... python tests/cluster/session_job.py EVENTS [name=value ...]
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1])]

import tensorflow as tf  # noqa: E402

import hookbridge as hb  # noqa: E402

v1 = tf.compat.v1
EVENTS = Path(sys.argv[1])
OPTIONS = dict(argument.split("=", 1) for argument in sys.argv[2:])


def note(event: str, **values: Any) -> None:
    """Writes an event, with a time that all processes of a machine share."""
    with EVENTS.open("a") as file:
        file.write(json.dumps({"event": event, "at": time.monotonic(), **values}))
        file.write("\n")


class Steps(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
    """Notes steps; misbehaves as the options say."""

    def begin(self) -> None:
        self.step = v1.train.get_global_step()
        self.runs = 0

    def after_create_session(self, session: Any, coord: Any) -> None:
        note("session", step=int(session.run(self.step)))

    def before_run(self, run_context: Any) -> Any:
        return v1.train.SessionRunArgs(self.step)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self.runs += 1
        note("step", step=int(run_values.results), run=self.runs)
        time.sleep(float(OPTIONS.get("step_secs", "0.02")))
        if self.runs == int(OPTIONS.get("raise_at", "-1")):
            raise ValueError("the hook of this worker fails")
        if self.runs == int(OPTIONS.get("request_stop_at", "-1")):
            run_context.request_stop()

    def end(self, session: Any) -> None:
        note("end", step=int(session.run(self.step)))


class Stopper(tf.keras.callbacks.Callback):  # type: ignore[misc]
    """Counts, so that it has a state; stops the training where it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.batches = 0

    def on_train_begin(self, logs: Any = None) -> None:
        note("train_begin", batches=self.batches)

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        if self.batches == 0:
            note("first_batch")

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.batches += 1
        if self.batches == int(OPTIONS.get("stop_training_at", "-1")):
            self.model.stop_training = True

    def on_train_end(self, logs: Any = None) -> None:
        note("train_end", batches=self.batches)


def build(cluster: Any) -> tuple[Any, list[Any]]:
    """A line through two points; returns the train op and the hooks it needs."""
    batches = int(OPTIONS.get("batches", "1000000"))
    dataset = tf.data.Dataset.from_tensors(([1.0, 2.0], [3.0, 5.0])).repeat(batches)
    iterator = v1.data.make_initializable_iterator(dataset)
    v1.add_to_collection(v1.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
    x, y = iterator.get_next()
    if "nan" in OPTIONS:
        y = y / float(OPTIONS["nan"])
    slope = v1.get_variable("slope", [], initializer=v1.zeros_initializer())
    offset = v1.get_variable("offset", [], initializer=v1.zeros_initializer())
    loss = tf.identity(tf.reduce_mean((x * slope + offset - y) ** 2), name="loss")
    v1.losses.add_loss(loss)
    optimizer = v1.train.AdamOptimizer(0.01)
    hooks: list[Any] = []
    if "aggregate" in OPTIONS:
        optimizer = v1.train.SyncReplicasOptimizer(
            optimizer, int(OPTIONS["aggregate"]), total_num_replicas=cluster.num_workers
        )
    step = v1.train.get_or_create_global_step()
    train_op = optimizer.minimize(loss, global_step=step)
    if "aggregate" in OPTIONS:
        hooks.append(optimizer.make_session_run_hook(cluster.is_chief))
    if "nan" in OPTIONS:
        hooks.append(v1.train.NanTensorHook(loss))
    return train_op, hooks


def train(cluster: Any) -> None:
    """Trains on this task until something ends it."""
    with tf.Graph().as_default(), v1.device(cluster.device_setter()):
        train_op, hooks = build(cluster)
        guests = [Steps(), Stopper()]
        if "last_step" in OPTIONS:
            last = int(OPTIONS["last_step"])
            guests.append(v1.train.StopAtStepHook(last_step=last))
        hooks += hb.as_hooks(guests, steps_per_epoch=10)
        names = sorted(v.op.name for v in v1.global_variables())
        note("variables", names=names)
        with cluster.training_session(
            hooks, checkpoint_dir=OPTIONS.get("dir"), save_checkpoint_steps=1000000
        ) as session:
            while not session.should_stop():
                session.run(train_op)


def main() -> None:
    """Runs the task that `TF_CONFIG` names."""
    time.sleep(float(OPTIONS.get("late_secs", "0")))
    note("start", pid=os.getpid())
    with hb.loops.SessionCluster(
        lost_secs=float(OPTIONS.get("lost_secs", "8"))
    ) as cluster:
        if cluster.is_server:
            cluster.serve()
        else:
            train(cluster)
    note("left", reason=cluster.stop_reason)


if __name__ == "__main__":
    main()
