"""`tf.contrib.distribute`: strategies whose arguments have other names today."""

from __future__ import annotations

import types
from typing import Any

import tensorflow as tf


def MirroredStrategy(
    devices: Any = None,
    num_gpus: int | None = None,
    num_gpus_per_worker: int | None = None,
    cross_device_ops: Any = None,
    auto_shard_dataset: bool = False,
    cross_tower_ops: Any = None,
) -> Any:
    """`tf.contrib.distribute.MirroredStrategy`."""
    number = num_gpus_per_worker if num_gpus is None else num_gpus
    if devices is None and number is not None:
        devices = [f"/gpu:{n}" for n in range(number)] or ["/cpu:0"]
    make = tf.compat.v1.distribute.MirroredStrategy
    return make(devices, cross_device_ops or cross_tower_ops)


def OneDeviceStrategy(device: str) -> Any:
    """`tf.contrib.distribute.OneDeviceStrategy`."""
    return tf.compat.v1.distribute.OneDeviceStrategy(device)


def ParameterServerStrategy(num_gpus_per_worker: int = 0) -> Any:
    """`tf.contrib.distribute.ParameterServerStrategy`."""
    # The strategy asks the runtime how many GPUs there are.
    return tf.compat.v1.distribute.experimental.ParameterServerStrategy()


def CollectiveAllReduceStrategy(
    num_gpus_per_worker: int = 0, communication: Any = None
) -> Any:
    """`tf.contrib.distribute.CollectiveAllReduceStrategy`."""
    return tf.compat.v1.distribute.experimental.MultiWorkerMirroredStrategy()


def DistributeConfig(
    train_distribute: Any = None,
    eval_distribute: Any = None,
    remote_cluster: Any = None,
) -> Any:
    """`tf.contrib.distribute.DistributeConfig`, which a `RunConfig` takes."""
    return types.SimpleNamespace(
        train_distribute=train_distribute,
        eval_distribute=eval_distribute,
        remote_cluster=remote_cluster,
    )


def get_distribution_strategy() -> Any:
    """`tf.contrib.distribute.get_distribution_strategy`."""
    return tf.distribute.get_strategy()


def has_distribution_strategy() -> bool:
    """`tf.contrib.distribute.has_distribution_strategy`."""
    return bool(tf.distribute.has_strategy())
