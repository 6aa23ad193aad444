"""The TensorFlow server of one task, and the configuration of its sessions."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from hookbridge import errors
from hookbridge.cluster import ClusterConfig
from hookbridge.loops.tasks import ports

v1 = tf.compat.v1

# How long a server may take to list its devices.
ANSWER_SECS = 5.0


class ClusterServer:
    """One task's server."""

    def __init__(self, config: ClusterConfig, session_config: Any) -> None:
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

    def use_config(self, config: Any) -> None:
        """Adds to the configuration; see `SessionCluster.use_config`."""
        wanted = config.device_count["CPU"]
        has = self._session_config.device_count["CPU"] if self._session_config else 1
        if self._server is not None and wanted > max(1, has):
            task = f"{self._config.task_type} {self._config.task_index}"
            raise errors.ClusterError(
                f"The server of `{task}` has started with {max(1, has)} "
                f"CPU device(s); expected {wanted}. Pass `SessionCluster("
                "session_config=hb.loops.session_config(devices))`."
            )
        self._session_config = _merged(self._session_config, config)

    def session_config(self, base: Any) -> Any:
        """A configuration for sessions; see `SessionCluster.session_config`."""
        config = v1.ConfigProto(allow_soft_placement=True)
        merged = _merged(config, self._session_config, base)
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


def _merged(*configs: Any) -> Any:
    merged = v1.ConfigProto()
    for config in configs:
        if config is not None:
            merged.MergeFrom(config)
    return merged
