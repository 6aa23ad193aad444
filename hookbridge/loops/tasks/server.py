"""The TensorFlow server of one task, and the configuration of its sessions."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from hookbridge.cluster import ClusterConfig
from hookbridge.cluster_checks import SERVER_TYPES
from hookbridge.loops.tasks import ports

v1 = tf.compat.v1

# How long a server may take to list its devices.
ANSWER_SECS = 5.0


def start_server(config: ClusterConfig, session_config: Any) -> Any:
    """Starts the server of this task of a cluster, on its port."""
    ports.check_own_port(config)
    members = {
        j: list(hosts) for j, hosts in config.cluster.items() if j in SERVER_TYPES
    }
    return tf.distribute.Server(
        members,
        job_name=config.task_type,
        task_index=config.task_index,
        config=session_config,
    )


def task_session_config(config: ClusterConfig, *bases: Any) -> Any:
    """A `ConfigProto` of all `bases`; see `SessionCluster.session_config`."""
    merged = v1.ConfigProto(allow_soft_placement=True)
    for base in bases:
        if base is not None:
            merged.MergeFrom(base)
    if config.cluster and not merged.device_filters:
        merged.device_filters.extend(["/job:ps", own_device(config)])
    return merged


def answers(config: ClusterConfig, job: str, index: int) -> bool:
    """Whether a TensorFlow server of this task listens at its address.

    Another program may have the port, or the server of another task.
    """
    device = f"/job:{job}/task:{index}"
    probe = v1.ConfigProto(
        device_filters=[device], operation_timeout_in_ms=int(ANSWER_SECS * 1000)
    )
    target = f"grpc://{config.cluster[job][index]}"
    try:
        with tf.Graph().as_default(), v1.Session(target, config=probe) as session:
            return bool(session.list_devices())
    except tf.errors.OpError:
        return False


def own_device(config: ClusterConfig) -> str:
    """The name of this task as a device."""
    return f"/job:{config.task_type}/task:{config.task_index}"


def own_target(config: ClusterConfig) -> str:
    """The session target of this process's server."""
    if not config.cluster:
        return ""
    return "grpc://" + config.cluster[config.task_type][config.task_index]
