"""Training loops that take one set of hooks and callbacks.

    hooks = hb.as_hooks([any hooks and callbacks], steps_per_epoch=100)
    with hb.loops.training_session(hooks) as session:
        while not session.should_stop():
            session.run(train_op)

The names are looked up on first use: importing this does not import TensorFlow.

Reading order: `callable_session`; `towers`; `own_loop`, `own_evaluation` and
`own_logs`; then `clusters`, `group_stop`, `tasks`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hookbridge.ground.imports.lazy import attach

if TYPE_CHECKING:
    from hookbridge.ground.processes.tf_config import ClusterConfig as ClusterConfig
    from hookbridge.jobs.loops.callable_session import (
        CallableSessionHook as CallableSessionHook,
    )
    from hookbridge.jobs.loops.callable_session import (
        training_session as training_session,
    )
    from hookbridge.jobs.loops.clusters.parameter_server import (
        parameter_server_strategy as parameter_server_strategy,
    )
    from hookbridge.jobs.loops.clusters.session_cluster import (
        SessionCluster as SessionCluster,
    )
    from hookbridge.jobs.loops.clusters.train_and_evaluate import (
        train_and_evaluate as train_and_evaluate,
    )
    from hookbridge.jobs.loops.group_stop.evaluator import (
        checkpoints_until_stop as checkpoints_until_stop,
    )
    from hookbridge.jobs.loops.group_stop.hook import GroupStopHook as GroupStopHook
    from hookbridge.jobs.loops.own_loop import OwnLoop as OwnLoop
    from hookbridge.jobs.loops.tasks.local_cluster import LocalCluster as LocalCluster
    from hookbridge.jobs.loops.towers.devices import session_config as session_config
    from hookbridge.jobs.loops.towers.devices import tower_devices as tower_devices
    from hookbridge.jobs.loops.towers.spec import TowerSpec as TowerSpec

__all__, __getattr__, __dir__ = attach(
    __name__,
    {
        "CallableSessionHook": "hookbridge.jobs.loops.callable_session",
        "ClusterConfig": "hookbridge.ground.processes.tf_config",
        "GroupStopHook": "hookbridge.jobs.loops.group_stop.hook",
        "LocalCluster": "hookbridge.jobs.loops.tasks.local_cluster",
        "OwnLoop": "hookbridge.jobs.loops.own_loop",
        "SessionCluster": "hookbridge.jobs.loops.clusters.session_cluster",
        "TowerSpec": "hookbridge.jobs.loops.towers.spec",
        "checkpoints_until_stop": "hookbridge.jobs.loops.group_stop.evaluator",
        "parameter_server_strategy": "hookbridge.jobs.loops.clusters.parameter_server",
        "session_config": "hookbridge.jobs.loops.towers.devices",
        "tower_devices": "hookbridge.jobs.loops.towers.devices",
        "train_and_evaluate": "hookbridge.jobs.loops.clusters.train_and_evaluate",
        "training_session": "hookbridge.jobs.loops.callable_session",
    },
)
