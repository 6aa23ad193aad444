"""Training loops that take one set of hooks and callbacks.

    loop = hb.loops.TowerLoop(model_fn, optimizer=tf.compat.v1.train.AdamOptimizer,
                              learning_rate=1e-3, num_towers=2)
    loop.train(input_fn, guests=[any hooks and callbacks], steps_per_epoch=100)

The names are looked up on first use: importing this does not import TensorFlow.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hookbridge.loops.callable_session import (
        CallableSessionHook as CallableSessionHook,
    )
    from hookbridge.loops.cluster import ClusterConfig as ClusterConfig
    from hookbridge.loops.devices import session_config as session_config
    from hookbridge.loops.devices import tower_devices as tower_devices
    from hookbridge.loops.final_values import TrainingResult as TrainingResult
    from hookbridge.loops.group_stop_estimator import (
        train_and_evaluate as train_and_evaluate,
    )
    from hookbridge.loops.group_stop_hook import GroupStopHook as GroupStopHook
    from hookbridge.loops.group_stop_marker import (
        checkpoints_until_stop as checkpoints_until_stop,
    )
    from hookbridge.loops.local_cluster import LocalCluster as LocalCluster
    from hookbridge.loops.monitored_session import training_session as training_session
    from hookbridge.loops.parameter_server import (
        parameter_server_strategy as parameter_server_strategy,
    )
    from hookbridge.loops.session_cluster import SessionCluster as SessionCluster
    from hookbridge.loops.session_loop import TowerLoop as TowerLoop
    from hookbridge.loops.tower_spec import TowerSpec as TowerSpec

_WHERE = {
    "CallableSessionHook": "hookbridge.loops.callable_session",
    "ClusterConfig": "hookbridge.loops.cluster",
    "GroupStopHook": "hookbridge.loops.group_stop_hook",
    "LocalCluster": "hookbridge.loops.local_cluster",
    "SessionCluster": "hookbridge.loops.session_cluster",
    "TowerLoop": "hookbridge.loops.session_loop",
    "TowerSpec": "hookbridge.loops.tower_spec",
    "TrainingResult": "hookbridge.loops.final_values",
    "parameter_server_strategy": "hookbridge.loops.parameter_server",
    "checkpoints_until_stop": "hookbridge.loops.group_stop_marker",
    "session_config": "hookbridge.loops.devices",
    "tower_devices": "hookbridge.loops.devices",
    "train_and_evaluate": "hookbridge.loops.group_stop_estimator",
    "training_session": "hookbridge.loops.monitored_session",
}

__all__ = (
    "CallableSessionHook",
    "ClusterConfig",
    "GroupStopHook",
    "LocalCluster",
    "SessionCluster",
    "TowerLoop",
    "TowerSpec",
    "TrainingResult",
    "checkpoints_until_stop",
    "parameter_server_strategy",
    "session_config",
    "tower_devices",
    "train_and_evaluate",
    "training_session",
)


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(
            f"module `hookbridge.loops` has no attribute `{name}`; public names: "
            f"{', '.join(__all__)}"
        )
    value = getattr(importlib.import_module(_WHERE[name]), name)
    globals()[name] = value
    return value
