"""`tf.contrib.distribute`: strategies whose arguments have other names today."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

_V1: Any = tf.compat.v1.distribute


def MirroredStrategy(
    devices: Any = None,
    num_gpus: int | None = None,
    num_gpus_per_worker: int | None = None,
    cross_device_ops: object = None,
    auto_shard_dataset: bool = False,
    cross_tower_ops: object = None,
) -> Any:
    """`tf.contrib.distribute.MirroredStrategy`.

    A program may name GPUs that the machine lacks: an Estimator's session places their
    operations on the CPU. TensorFlow 1 reduced to one device then. TensorFlow 2 waits
    for NCCL between these GPUs, in the first training step, for ever.
    """
    number = num_gpus_per_worker if num_gpus is None else num_gpus
    if devices is None and number is not None:
        devices = [f"/gpu:{n}" for n in range(number)] or ["/cpu:0"]
    reduction = cross_device_ops or cross_tower_ops
    if reduction is None and any(map(_lacks, devices or ())):
        reduction = _V1.ReductionToOneDevice()
    return _V1.MirroredStrategy(devices, reduction)


def _lacks(device: str) -> bool:
    """Return whether `device` is a GPU of this process that it does not have."""
    spec = tf.DeviceSpec.from_string(device)
    if spec.device_type != "GPU" or spec.job not in (None, "localhost"):
        return False
    return (spec.device_index or 0) >= len(tf.config.list_logical_devices("GPU"))


def ParameterServerStrategy(num_gpus_per_worker: int = 0) -> Any:
    """`tf.contrib.distribute.ParameterServerStrategy`; the runtime counts GPUs."""
    return _V1.experimental.ParameterServerStrategy()


def CollectiveAllReduceStrategy(
    num_gpus_per_worker: int = 0, communication: object = None
) -> Any:
    """`tf.contrib.distribute.CollectiveAllReduceStrategy`."""
    return _V1.experimental.MultiWorkerMirroredStrategy()
