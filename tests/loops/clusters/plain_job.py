"""One task of a cluster on plain TensorFlow with `GroupStopHook`.

TF_CONFIG=... python tests/loops/clusters/plain_job.py EVENTS [name=value ...]
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "helpers"), str(HERE.parents[2])]

import tensorflow as tf  # noqa: E402
from job_events import OPTIONS, Steps, note  # noqa: E402

import hookbridge as hb  # noqa: E402

v1 = tf.compat.v1


def main() -> None:
    """Runs the task that `TF_CONFIG` names."""
    config = json.loads(os.environ["TF_CONFIG"])
    kind, index = config["task"]["type"], config["task"]["index"]
    server = tf.distribute.Server(config["cluster"], job_name=kind, task_index=index)
    if kind == "ps":
        server.join()
    chief = index == 0
    time.sleep(float(OPTIONS.get("late_secs", "0")))
    workers = len(config["cluster"]["worker"])
    filters = ["/job:ps", f"/job:worker/task:{index}"]
    place = v1.train.replica_device_setter(
        cluster=config["cluster"], worker_device=filters[1]
    )
    with tf.Graph().as_default(), v1.device(place):
        slope = v1.get_variable("slope", [], initializer=v1.zeros_initializer())
        step = v1.train.get_or_create_global_step()
        hooks: list[Any] = [Steps()]
        optimizer = v1.train.GradientDescentOptimizer(0.1)
        optimizer = v1.train.SyncReplicasOptimizer(optimizer, workers, workers)
        train_op = optimizer.minimize((slope - 1.0) ** 2, global_step=step)
        hooks.append(optimizer.make_session_run_hook(chief))
        hooks.append(hb.loops.GroupStopHook())
        with v1.train.MonitoredTrainingSession(
            server.target,
            is_chief=chief,
            hooks=hooks,
            config=v1.ConfigProto(device_filters=filters),
        ) as session:
            while not session.should_stop():
                session.run(train_op)
    note("left")


if __name__ == "__main__":
    main()
