"""`tf.contrib.distribute`: strategies whose arguments have other names today."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

_V1: Any = tf.compat.v1.distribute


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
    return _V1.MirroredStrategy(devices, cross_device_ops or cross_tower_ops)


def ParameterServerStrategy(num_gpus_per_worker: int = 0) -> Any:
    """`tf.contrib.distribute.ParameterServerStrategy`; the runtime counts GPUs."""
    return _V1.experimental.ParameterServerStrategy()


def CollectiveAllReduceStrategy(
    num_gpus_per_worker: int = 0, communication: Any = None
) -> Any:
    """`tf.contrib.distribute.CollectiveAllReduceStrategy`."""
    return _V1.experimental.MultiWorkerMirroredStrategy()
