"""The TensorFlow server of one task, and what sessions and graphs need of it."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from hookbridge import errors
from hookbridge.cluster import ClusterConfig
from hookbridge.loops.tasks import ports
from hookbridge.loops.tasks.jobs import trainers

v1 = tf.compat.v1


class ClusterServer:
    """One task's server.

    Args:
      config: the cluster and this task.
      session_config: a `tf.compat.v1.ConfigProto` for server and sessions.

    Attributes:
      config: the cluster and this task.
    """

    def __init__(self, config: ClusterConfig, session_config: Any) -> None:
        self.config = config
        self._session_config = session_config
        self._name = f"{config.task_type} {config.task_index}"
        self._server: Any = None

    @property
    def is_server(self) -> bool:
        """Whether this task is a parameter server."""
        return self.config.task_type == "ps"

    @property
    def is_chief(self) -> bool:
        """Whether this task initialises, saves and writes for all."""
        return self.config.is_chief

    @property
    def num_workers(self) -> int:
        """How many tasks compute gradients, the chief among them."""
        return max(1, len(trainers(self.config)))

    @property
    def target(self) -> str:
        """The session target; starts the server."""
        server = self.start()
        return "" if server is None else str(server.target)

    def use_config(self, config: Any) -> None:
        """Adds to the configuration of server and sessions, such as devices.

        Args:
          config: a `tf.compat.v1.ConfigProto`. What the server's devices are is
            settled once it has started.

        Raises:
          errors.ClusterError: the server has started with fewer CPU devices.
        """
        wanted = config.device_count["CPU"]
        has = self._session_config.device_count["CPU"] if self._session_config else 1
        if self._server is not None and wanted > max(1, has):
            raise errors.ClusterError(
                f"The server of `{self._name}` has started with {max(1, has)} "
                f"CPU device(s); expected {wanted}. Pass `SessionCluster("
                "session_config=hb.loops.session_config(devices))`."
            )
        merged = v1.ConfigProto()
        for each in (self._session_config, config):
            if each is not None:
                merged.MergeFrom(each)
        self._session_config = merged

    def start(self) -> Any:
        """Starts this task's server, once.

        Returns:
          The `tf.distribute.Server`; None without a cluster.

        Raises:
          errors.ClusterError: this task's port is in use.
        """
        if self._server is None and self.config.cluster:
            ports.check_own_port(self.config)
            members = {
                job: list(hosts)
                for job, hosts in self.config.cluster.items()
                if job != "evaluator"
            }
            self._server = tf.distribute.Server(
                members,
                job_name=self.config.task_type,
                task_index=self.config.task_index,
                config=self._session_config,
            )
        return self._server

    def device_setter(self) -> Any:
        """What to give to `tf.compat.v1.device`: variables to the servers, in turn.

        The rest is on this worker; without a cluster nothing is placed.
        """
        if not self.config.cluster:
            return None
        own = f"/job:{self.config.task_type}/task:{self.config.task_index}"
        return v1.train.replica_device_setter(
            worker_device=own,
            cluster=tf.train.ClusterSpec(
                {job: list(hosts) for job, hosts in self.config.cluster.items()}
            ),
        )

    def session_config(self, base: Any = None) -> Any:
        """A `ConfigProto` whose sessions depend on the servers and on nobody else.

        Without it a session waits for every worker, also for one that has ended.

        Args:
          base: a `ConfigProto` to start from; it is not changed.
        """
        merged = v1.ConfigProto(allow_soft_placement=True)
        for config in (self._session_config, base):
            if config is not None:
                merged.MergeFrom(config)
        if self.config.cluster and not merged.device_filters:
            own = f"/job:{self.config.task_type}/task:{self.config.task_index}"
            merged.device_filters.extend(["/job:ps", own])
        return merged
