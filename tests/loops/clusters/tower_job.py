"""One task of a cluster that trains in towers; started by the tests beside it.

TF_CONFIG=... python tests/loops/clusters/tower_job.py EVENTS [name=value ...]
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "helpers"), str(HERE.parents[2])]

import tensorflow as tf  # noqa: E402
from job_events import OPTIONS, Steps, note  # noqa: E402

import hookbridge as hb  # noqa: E402

v1 = tf.compat.v1
DEVICES = ("/device:CPU:0", "/device:CPU:1")


class Placement(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
    """Notes where the variables are, which devices compute, and the last values."""

    def begin(self) -> None:
        self.variables = {v.op.name: v for v in v1.trainable_variables()}
        operations = v1.get_default_graph().get_operations()
        towers = {op.device for op in operations if op.type == "MatMul"}
        places = {name: v.device for name, v in self.variables.items()}
        note("placement", variables=places, towers=sorted(towers))

    def end(self, session: Any) -> None:
        values = session.run(self.variables)
        note("values", **{name: value.tolist() for name, value in values.items()})


def train(cluster: Any) -> None:
    """Trains until the last step, with a model function that may be synchronous."""
    x = tf.constant([[1.0, 2.0], [0.5, -1.0], [-1.0, 1.0], [2.0, 0.0]])
    y = tf.constant([[1.0], [2.0], [-2.0], [3.0]])
    synchronous: list[Any] = []

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        kernel = v1.get_variable("kernel", [2, 1], initializer=v1.zeros_initializer())
        bias = v1.get_variable("bias", [1], initializer=v1.zeros_initializer())
        loss = tf.reduce_mean((tf.matmul(features, kernel) + bias - labels) ** 2)
        optimizer = v1.train.GradientDescentOptimizer(0.05)
        if cluster.num_workers > 1:
            replicas = int(OPTIONS["aggregate"])
            optimizer = v1.train.SyncReplicasOptimizer(optimizer, replicas)
            synchronous.append(optimizer)
        step = v1.train.get_global_step()
        train_op = optimizer.minimize(loss, global_step=step)
        return hb.loops.TowerSpec(loss, train_op=train_op)

    v1.train.get_or_create_global_step()
    spec = hb.replicate_model_fn(model_fn, DEVICES)(x, y, "train")
    last = v1.train.StopAtStepHook(last_step=int(OPTIONS["last_step"]))
    hooks = [*hb.as_hooks([Steps(), Placement()]), last]
    hooks += [o.make_session_run_hook(cluster.is_chief) for o in synchronous[:1]]
    with cluster.training_session(hooks) as session:
        while not session.should_stop():
            session.run(spec.train_op)


def main() -> None:
    """Runs the task that `TF_CONFIG` names."""
    two = hb.loops.session_config(DEVICES)
    with hb.loops.SessionCluster(session_config=two, lost_secs=8) as cluster:
        if cluster.is_server:
            cluster.serve()
        else:
            with tf.Graph().as_default(), v1.device(cluster.device_setter()):
                train(cluster)
    note("left", reason=cluster.stop_reason)


if __name__ == "__main__":
    main()
