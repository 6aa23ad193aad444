"""The TensorFlow server of one task, and the configuration of its sessions."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from hookbridge.arguments import instance
from hookbridge.cluster import ClusterConfig
from hookbridge.loops.tasks import ports

v1 = tf.compat.v1

# How long a server may take to list its devices.
ANSWER_SECS = 5.0


class ClusterServer:
    """One task's server."""

    def __init__(self, config: ClusterConfig, session_config: Any) -> None:
        if session_config is not None:
            kind = tf.compat.v1.ConfigProto
            instance("session_config", session_config, kind, "a `ConfigProto`")
        self._config = config
        self._session_config = session_config
        self._server: Any = None

    @property
    def target(self) -> str:
        """The session target; starts the server."""
        server = self.start()
        return "" if server is None else str(server.target)

    def check_port(self) -> None:
        """Raises `errors.ClusterError` if another process has this task's port."""
        if self._config.cluster and self._server is None:
            ports.check_own_port(self._config)

    def start(self) -> Any:
        """Starts the server, once; see `SessionCluster.start`."""
        if self._server is None and self._config.cluster:
            self.check_port()
            members = {
                job: list(hosts)
                for job, hosts in self._config.cluster.items()
                if job != "evaluator"
            }
            self._server = tf.distribute.Server(
                members,
                job_name=self._config.task_type,
                task_index=self._config.task_index,
                config=self._session_config,
            )
        return self._server

    def session_config(self, base: Any) -> Any:
        """A configuration for sessions; see `SessionCluster.session_config`."""
        merged = v1.ConfigProto(allow_soft_placement=True)
        for config in (self._session_config, base):
            if config is not None:
                merged.MergeFrom(config)
        if self._config.cluster and not merged.device_filters:
            merged.device_filters.extend(["/job:ps", own_device(self._config)])
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
