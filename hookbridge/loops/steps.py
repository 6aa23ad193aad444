"""The loop of a session: a graph is built, and its train op runs until the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from hookbridge.cluster import ClusterConfig
from hookbridge.loops.clusters.session_cluster import SessionCluster
from hookbridge.loops.towers.build import VARIABLE_DEVICE
from hookbridge.loops.towers.devices import session_config
from hookbridge.loops.towers.inputs import next_training_batch


class Steps(NamedTuple):
    """What a session needs of a graph."""

    train_op: Any
    hooks: Sequence[Any]
    scaffold: Any = None


def run_steps(
    build: Callable[[Any], Steps],
    input_fn: Callable[[], Any],
    place: ClusterConfig,
    *,
    devices: Sequence[str],
    seed: int | None,
    **options: Any,
) -> None:
    """Runs steps until the data, a hook or another task ends the session.

    `build` gets the tensors of the next batch, in the graph; a parameter server serves
    the others instead. `options` are further arguments of `MonitoredTrainingSession`.
    """
    config = session_config(devices)
    with SessionCluster(place, session_config=config) as cluster:
        if cluster.is_server:
            cluster.serve()
            return
        with tf.Graph().as_default(), tf.compat.v1.device(cluster.device_setter()):
            tf.compat.v1.set_random_seed(seed)
            with tf.device(VARIABLE_DEVICE):
                batch = next_training_batch(input_fn())
            steps = build(batch)
            with cluster.training_session(
                steps.hooks,
                scaffold=steps.scaffold,
                config=config,
                log_step_count_steps=None,
                **options,
            ) as session:
                while not session.should_stop():
                    session.run(steps.train_op)
