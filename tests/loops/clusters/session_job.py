"""One task of a small between-graph cluster; started by the tests beside it.

TF_CONFIG=... python tests/loops/clusters/session_job.py EVENTS [name=value ...]
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "helpers"), str(HERE.parents[2])]

import tensorflow as tf  # noqa: E402
from job_events import Steps, Stopper  # noqa: E402
from job_notes import OPTIONS, note  # noqa: E402

import hookbridge as hb  # noqa: E402
from hookbridge.jobs.loops.tasks.ports import Liveness  # noqa: E402

v1 = tf.compat.v1
DEVICES = ("/device:CPU:0", "/device:CPU:1")


def build(cluster: Any) -> tuple[Any, list[Any]]:
    """A line through two points; returns the train op and the hooks it needs."""
    x, y = tf.constant([1.0, 2.0]), tf.constant([3.0, 5.0])
    if "batches" in OPTIONS:  # an iterator can delay the end: docs/decisions/0005
        dataset = tf.data.Dataset.from_tensors((x, y)).repeat(int(OPTIONS["batches"]))
        iterator = v1.data.make_initializable_iterator(dataset)
        v1.add_to_collection(v1.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
        x, y = iterator.get_next()
    if "nan" in OPTIONS:
        y = y / float(OPTIONS["nan"])
    step = v1.train.get_or_create_global_step()
    synchronous: list[Any] = []

    def line(features: Any, labels: Any, mode: str) -> Any:
        slope = v1.get_variable("slope", [], initializer=v1.zeros_initializer())
        offset = v1.get_variable("offset", [], initializer=v1.zeros_initializer())
        error = (features * slope + offset - labels) ** 2
        loss = tf.identity(tf.reduce_mean(error), name="loss")
        optimizer = v1.train.AdamOptimizer(0.01)
        if "aggregate" in OPTIONS and cluster.num_replicas > 1:
            replicas, total = int(OPTIONS["aggregate"]), cluster.num_replicas
            optimizer = v1.train.SyncReplicasOptimizer(optimizer, replicas, total)
            synchronous.append(optimizer)
        return hb.loops.TowerSpec(loss, train_op=optimizer.minimize(loss, step))

    if "towers" in OPTIONS:
        spec = hb.replicate_model_fn(line, DEVICES)(x, y, "train")
        note_places()
    else:
        spec = line(x, y, "train")
        v1.losses.add_loss(spec.loss)
    hooks = [o.make_session_run_hook(cluster.is_chief) for o in synchronous[:1]]
    if "nan" in OPTIONS:
        hooks.append(v1.train.NanTensorHook(spec.loss))
    return spec.train_op, hooks


def note_places() -> None:
    """Notes where the variables are, and which devices compute."""
    operations = v1.get_default_graph().get_operations()
    towers = {op.device for op in operations if op.type == "Pow"}
    places = {v.op.name: v.device for v in v1.trainable_variables()}
    note("placement", variables=places, towers=sorted(towers))


def train(cluster: Any) -> None:
    """Trains on this task until something ends it."""
    with tf.Graph().as_default(), v1.device(cluster.device_setter()):
        train_op, hooks = build(cluster)
        guests: list[Any] = [Steps(), Stopper()]
        if "last_step" in OPTIONS:
            last = int(OPTIONS["last_step"])
            guests.append(v1.train.StopAtStepHook(last_step=last))
        if "record" in OPTIONS:
            guests.append(hb.recorder(OPTIONS["record"], steps=5))
        hooks += hb.as_hooks(guests, steps_per_epoch=10)
        names = sorted(v.op.name for v in v1.global_variables())
        note("variables", names=names)
        with cluster.training_session(
            hooks,
            checkpoint_dir=OPTIONS.get("dir"),
            save_checkpoint_steps=int(OPTIONS.get("save_steps", "1000000")),
        ) as session:
            while not session.should_stop():
                session.run(train_op)


def plain(config: Any) -> None:
    """Trains in TensorFlow's own sessions, with `GroupStopHook` alone."""
    jobs, task = config["cluster"], config["task"]
    kind, index = task["type"], task["index"]
    server = tf.distribute.Server(jobs, job_name=kind, task_index=index)
    if kind == "ps":
        server.join()
    own = f"/job:worker/task:{index}"
    place = v1.train.replica_device_setter(cluster=jobs, worker_device=own)
    me = SimpleNamespace(num_replicas=len(jobs["worker"]), is_chief=index == 0)
    with tf.Graph().as_default(), v1.device(place):
        train_op, hooks = build(me)
        filters = v1.ConfigProto(device_filters=["/job:ps", own])
        options = {"master": server.target, "config": filters}
        options["hooks"] = [Steps(), *hooks, hb.loops.GroupStopHook()]
        if me.is_chief:  # it initialises the variables
            made = v1.train.SingularMonitoredSession(**options)
        else:
            made = v1.train.MonitoredTrainingSession(is_chief=False, **options)
        with made as session:
            while not session.should_stop():
                session.run(train_op)


def note_looks() -> None:
    """Notes when a server has looked which tasks are alive."""
    look = Liveness.look

    def noted(self: Liveness) -> None:
        look(self)
        note("looked")

    Liveness.look = noted  # type: ignore[method-assign]


def evaluate() -> None:
    """Reads each checkpoint until the job is over."""
    for path in hb.loops.checkpoints_until_stop(OPTIONS["dir"]):
        note("evaluated", step=int(path.rpartition("-")[2]))
    note("left")


def main() -> None:
    """Runs the task that `TF_CONFIG` names."""
    time.sleep(float(OPTIONS.get("late_secs", "0")))
    note("start", pid=os.getpid())
    config = json.loads(os.environ["TF_CONFIG"])
    if config and config["task"]["type"] == "evaluator":
        evaluate()
        return
    if "plain" in OPTIONS:
        plain(config)
        return
    cluster = hb.loops.SessionCluster(
        session_config=hb.loops.session_config(DEVICES)
        if "towers" in OPTIONS
        else None,
        lost_secs=float(OPTIONS.get("lost_secs", "8")),
    )
    note("made", reason=cluster.stop_reason)
    try:
        with cluster:
            if cluster.is_server:
                note_looks()
                cluster.serve()
            elif "nothing" not in OPTIONS:
                train(cluster)
    finally:
        note("left", reason=cluster.stop_reason)


if __name__ == "__main__":
    main()
