"""One small job whose parts run in a session, in `fit` and under parameter servers.

python tests/adapters/helpers/shared_loops.py FOLDER PART... makes the parts in one
process, with the servers of a cluster in it, and prints what each has counted.
"""

from __future__ import annotations

import importlib
import json
import sys
from typing import Any

import numpy as np
import tensorflow as tf
from callback_loops import until_stop
from callback_recorder import counting

import hookbridge as hb
from hookbridge.jobs.loops.tasks.ports import held_ports

v1: Any = tf.compat.v1
PER_EPOCH, EPOCHS = 3, 2  # of each part
SERVERS: list[Any] = []  # they live as long as the process
ALL = "stopping reduce count other"


def guests(keras: Any) -> dict[str, Any]:
    """The callbacks of the job, two of a class among them, by the names in `ALL`."""
    c = keras.callbacks
    # No loss is ever better than the first one.
    never = {"min_delta": 1e9}
    found = [
        c.EarlyStopping("loss", patience=1000, **never),
        c.ReduceLROnPlateau("loss", factor=0.5, patience=1, min_lr=0.0, **never),
        counting(keras),
        c.EarlyStopping("loss", patience=1000, mode="max", **never),
    ]
    return dict(zip(ALL.split(), found, strict=True))


def part(
    keras: Any, folder: str, kind: str, *groups: str, strategy: Any = None
) -> dict[str, Any]:
    """Two epochs in a "session" or a "fit"; returns what the callbacks have counted.

    Each group has the names of the guests in a call of `as_hooks`. In `fit`, "saver" is
    the hook that writes checkpoints.
    """
    made = guests(keras)
    if kind == "session":
        _session(made, folder, groups)
    else:
        _fit(keras, made, folder, groups[0].split(), strategy)
    model = made["reduce"].model
    return {
        "waits": [made["stopping"].wait, made["other"].wait],
        "bests": [getattr(made[n], "best", None) for n in ("stopping", "other")],
        "batches": made["count"].batches,
        "epochs": made["count"].epochs,
        "rate": model and float(np.asarray(model.optimizer.learning_rate)),
    }


def _session(made: dict[str, Any], folder: str, groups: Any) -> None:
    with tf.Graph().as_default():
        step = v1.train.get_or_create_global_step()
        weights = v1.get_variable("d/kernel", [2, 1])
        bias = v1.get_variable("d/bias", [1])
        loss = tf.reduce_mean((tf.ones([4, 2]) @ weights + bias - 3.0) ** 2)
        train_op = v1.train.GradientDescentOptimizer(0.1).minimize(loss, step)
        hooks: list[Any] = [v1.train.StopAtStepHook(num_steps=PER_EPOCH * EPOCHS)]
        options: dict[str, Any] = {"steps_per_epoch": PER_EPOCH, "logs": {"loss": loss}}
        for group in groups:
            hooks += hb.as_hooks([made[name] for name in group.split()], **options)
        until_stop(
            hooks,
            train_op,
            checkpoint_dir=folder,
            save_checkpoint_steps=1000,
            save_summaries_steps=0,
            log_step_count_steps=None,
        )


def _fit(
    keras: Any, made: dict[str, Any], folder: str, order: list[str], strategy: Any
) -> None:
    with (strategy or tf.distribute.get_strategy()).scope():
        model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1, name="d")])
        model.compile(keras.optimizers.SGD(0.1), "mse")
    if tf.train.latest_checkpoint(folder):
        # The rate is in checkpoints of `fit` only.
        hb.checkpoints.restore(model, folder)
    saver = v1.train.CheckpointSaverHook(folder, save_steps=1000)
    data = tf.data.Dataset.from_tensors((np.ones([4, 2], "f"), np.full([4, 1], 3.0)))
    model.fit(
        data.repeat(PER_EPOCH * EPOCHS),
        steps_per_epoch=PER_EPOCH,
        epochs=EPOCHS,
        verbose=0,
        callbacks=hb.as_callbacks([{**made, "saver": saver}[name] for name in order]),
    )


def expected(parts: int, bests: list[float]) -> dict[str, Any]:
    """What the callbacks have counted after some parts."""
    epochs = parts * EPOCHS
    return {
        "waits": [epochs - 1] * 2,
        "bests": bests,
        "batches": epochs * PER_EPOCH,
        "epochs": epochs,
        "rate": float(np.float32(0.1 * 0.5 ** (epochs - 1))),
    }


def _with_servers() -> Any:
    """A `ParameterServerStrategy` whose servers are in this process."""
    names = ("worker", "ps", "chief")
    with held_ports(len(names)) as ports:
        jobs = {n: [f"localhost:{p}"] for n, p in zip(names, ports, strict=True)}
        spec = tf.train.ClusterSpec(jobs)
        SERVERS.extend(
            tf.distribute.Server(spec, job_name=job, task_index=0, protocol="grpc")
            for job in ("worker", "ps")
        )
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
        spec, task_type="chief", task_id=0, rpc_layer="grpc"
    )
    return tf.distribute.ParameterServerStrategy(resolver)


if __name__ == "__main__":
    keras2 = tf.keras
    if not tf.__version__.startswith("2.15"):
        keras2 = importlib.import_module("tf_keras")
    strategy = None
    for name in sys.argv[2:]:
        if name == "servers" and strategy is None:
            strategy = _with_servers()
        names = ALL if name == "session" else f"{ALL} saver"
        used = strategy if name == "servers" else None
        found = part(keras2, sys.argv[1], name, names, strategy=used)
        print(json.dumps(found), flush=True)
