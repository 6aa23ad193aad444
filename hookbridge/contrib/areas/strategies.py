"""`tf.contrib.distribute`: strategies whose arguments have other names today."""

from __future__ import annotations

import collections
from typing import Any

import tensorflow as tf

_V1: Any = tf.compat.v1.distribute
_ParameterServer: Any = _V1.experimental.ParameterServerStrategy
_MultiWorker: Any = _V1.experimental.MultiWorkerMirroredStrategy


class MirroredStrategy(_V1.MirroredStrategy):  # type: ignore[misc]
    """`tf.contrib.distribute.MirroredStrategy`."""

    def __init__(
        self,
        devices: Any = None,
        num_gpus: int | None = None,
        num_gpus_per_worker: int | None = None,
        cross_device_ops: Any = None,
        auto_shard_dataset: bool = False,
        cross_tower_ops: Any = None,
    ) -> None:
        number = num_gpus_per_worker if num_gpus is None else num_gpus
        if devices is None and number is not None:
            devices = [f"/gpu:{n}" for n in range(number)] or ["/cpu:0"]
        super().__init__(devices, cross_device_ops or cross_tower_ops)


class ParameterServerStrategy(_ParameterServer):  # type: ignore[misc]
    """`tf.contrib.distribute.ParameterServerStrategy`."""

    def __init__(self, num_gpus_per_worker: int = 0) -> None:
        # The strategy asks the runtime how many GPUs there are.
        super().__init__()


class CollectiveAllReduceStrategy(_MultiWorker):  # type: ignore[misc]
    """`tf.contrib.distribute.CollectiveAllReduceStrategy`."""

    def __init__(self, num_gpus_per_worker: int = 0, communication: Any = None) -> None:
        super().__init__()


DistributeConfig = collections.namedtuple(
    "DistributeConfig",
    ("train_distribute", "eval_distribute", "remote_cluster"),
    defaults=(None, None, None),
)
