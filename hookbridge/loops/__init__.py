"""Training loops that take one set of hooks and callbacks.

    hooks = hb.as_hooks([any hooks and callbacks], steps_per_epoch=100)
    with hb.loops.training_session(hooks) as session:
        while not session.should_stop():
            session.run(train_op)

The names are looked up on first use: importing this does not import TensorFlow.

Reading order: `callable_session`; `towers`; `own_loop` and `own_logs`; then `clusters`,
`group_stop`, `tasks`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hookbridge.lazy import attach

if TYPE_CHECKING:
    from hookbridge.cluster import ClusterConfig as ClusterConfig
    from hookbridge.loops.callable_session import (
        CallableSessionHook as CallableSessionHook,
    )
    from hookbridge.loops.callable_session import training_session as training_session
    from hookbridge.loops.clusters.parameter_server import (
        parameter_server_strategy as parameter_server_strategy,
    )
    from hookbridge.loops.clusters.session_cluster import (
        SessionCluster as SessionCluster,
    )
    from hookbridge.loops.clusters.train_and_evaluate import (
        train_and_evaluate as train_and_evaluate,
    )
    from hookbridge.loops.group_stop.evaluator import (
        checkpoints_until_stop as checkpoints_until_stop,
    )
    from hookbridge.loops.group_stop.hook import GroupStopHook as GroupStopHook
    from hookbridge.loops.own_loop import OwnLoop as OwnLoop
    from hookbridge.loops.tasks.local_cluster import LocalCluster as LocalCluster
    from hookbridge.loops.towers.devices import session_config as session_config
    from hookbridge.loops.towers.devices import tower_devices as tower_devices
    from hookbridge.loops.towers.spec import TowerSpec as TowerSpec

__all__, __getattr__ = attach(globals())
