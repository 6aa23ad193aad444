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
from job_events import OPTIONS, Steps, Stopper, note  # noqa: E402

import hookbridge as hb  # noqa: E402

v1 = tf.compat.v1


def input_fn() -> Any:
    x = tf.constant([[1.0, 2.0], [0.5, -1.0], [-1.0, 1.0], [2.0, 0.0]])
    y = tf.constant([[1.0], [2.0], [-2.0], [3.0]])
    return tf.data.Dataset.from_tensors((x, y)).repeat()


def model(features: Any, labels: Any, mode: str) -> Any:
    kernel = v1.get_variable("kernel", [2, 1], initializer=v1.zeros_initializer())
    bias = v1.get_variable("bias", [1], initializer=v1.zeros_initializer())
    return hb.loops.TowerSpec(
        loss=tf.reduce_mean((tf.matmul(features, kernel) + bias - labels) ** 2)
    )


class Placement(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
    """Notes where the variables are, and which devices compute."""

    def begin(self) -> None:
        places = {v.op.name: v.device for v in v1.trainable_variables()}
        operations = v1.get_default_graph().get_operations()
        towers = {op.device for op in operations if op.type == "MatMul"}
        note("placement", variables=places, towers=sorted(towers))


def loop(cluster: Any) -> None:
    """`TowerLoop` in a cluster."""
    towers = hb.loops.TowerLoop(
        model,
        optimizer=v1.train.GradientDescentOptimizer,
        learning_rate=0.05,
        num_towers=2,
        cluster=cluster,
        replicas_to_aggregate=int(OPTIONS["aggregate"]),
    )
    result = towers.train(
        input_fn,
        guests=[Steps(), Stopper(), Placement()],
        max_steps=int(OPTIONS["last_step"]),
    )
    values = {name: value.tolist() for name, value in result.variables.items()}
    note("result", step=result.global_step, variables=values)


def replicated(cluster: Any) -> None:
    """`replicate_model_fn` with a model function that uses `SyncReplicasOptimizer`."""
    features, labels = v1.data.make_one_shot_iterator(input_fn()).get_next()
    made: list[Any] = []

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        loss = model(features, labels, mode).loss
        optimizer = v1.train.SyncReplicasOptimizer(
            v1.train.GradientDescentOptimizer(0.05), int(OPTIONS["aggregate"])
        )
        made.append(optimizer)
        step = v1.train.get_global_step()
        return hb.estimator.EstimatorSpec(
            mode, loss=loss, train_op=optimizer.minimize(loss, global_step=step)
        )

    v1.train.get_or_create_global_step()
    spec = hb.replicate_model_fn(model_fn, num_towers=2)(features, labels, "train")
    hooks = hb.as_hooks([Steps(), Placement()])
    hooks.append(v1.train.StopAtStepHook(last_step=int(OPTIONS["last_step"])))
    hooks.append(made[0].make_session_run_hook(cluster.is_chief))
    with cluster.training_session(hooks) as session:
        while not session.should_stop():
            session.run(spec.train_op)


def main() -> None:
    """Runs the task that `TF_CONFIG` names."""
    two = hb.loops.session_config(["/device:CPU:0", "/device:CPU:1"])
    with hb.loops.SessionCluster(session_config=two, lost_secs=8) as cluster:
        if cluster.is_server:
            cluster.serve()
        elif OPTIONS["kind"] == "loop":
            loop(cluster)
        else:
            with tf.Graph().as_default(), v1.device(cluster.device_setter()):
                replicated(cluster)
    note("left", reason=cluster.stop_reason)


if __name__ == "__main__":
    main()
