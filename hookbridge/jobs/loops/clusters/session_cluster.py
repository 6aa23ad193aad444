"""Between-graph training on a cluster whose processes all end with the job."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Any

import tensorflow as tf

from hookbridge import errors
from hookbridge.ground.arguments import instance
from hookbridge.ground.processes import exit_codes
from hookbridge.ground.processes.tf_config import ClusterConfig
from hookbridge.jobs.loops.callable_session import training_session
from hookbridge.jobs.loops.clusters.serve import serve
from hookbridge.jobs.loops.group_stop.around_session import (
    FinishedSession,
    end_with,
    gated,
    stop_by,
    stop_of_all,
)
from hookbridge.jobs.loops.group_stop.evaluator import ending_together
from hookbridge.jobs.loops.group_stop.hook import GroupHook, StepEndHook, fail_fast
from hookbridge.jobs.loops.group_stop.member import (
    LOST_SECS,
    START_SECS,
    GroupStop,
    GroupStopped,
)
from hookbridge.jobs.loops.tasks.ports import check_own_port
from hookbridge.jobs.loops.tasks.server import own_device, start_server
from hookbridge.jobs.loops.tasks.task_checks import check_roles, config_of, trainers

v1 = tf.compat.v1


class SessionCluster:
    """One task of a between-graph cluster: chief, worker or parameter server.

    Servers, devices and sessions come from `tf.distribute.Server`,
    `tf.compat.v1.train.replica_device_setter` and `MonitoredTrainingSession`.

        with hb.loops.SessionCluster() as cluster:
            if cluster.is_server:
                cluster.serve()
            else:
                place = tf.compat.v1.device(cluster.device_setter())
                with tf.Graph().as_default(), place:
                    train_op = build()
                    with cluster.training_session(hooks=hooks) as session:
                        while not session.should_stop():
                            session.run(train_op)

    All processes end within seconds of the last step. A stop of one task, for any
    reason, stops all tasks, including the parameter servers; only a worker that gets
    SIGTERM stops alone. Without `TF_CONFIG` the same program trains in one process.

    Attributes:
      config: the cluster and this task.
    """

    def __init__(
        self,
        config: ClusterConfig | None = None,
        *,
        session_config: object = None,
        lost_secs: float = LOST_SECS,
        start_secs: float = START_SECS,
    ) -> None:
        """Configure the task; nothing is started before `start`.

        Args:
          config: the cluster and this process's place in it; None takes
            `TF_CONFIG`.
          session_config: a `tf.compat.v1.ConfigProto` for server and sessions.
          lost_secs: how long a parameter server or the chief may be away, for
            example because it is started again, before the others end with an
            error.
          start_secs: how long to wait for the others at the start.

        Raises:
          errors.InvalidArgumentError: `TF_CONFIG` is malformed, there is no
            parameter server or no chief, or this task neither trains nor serves.
        """
        self.config: ClusterConfig = ClusterConfig.of(config)
        check_roles(self.config)
        fail_fast()
        exit_codes.use_for_errors()
        if session_config is not None:
            instance(
                "session_config", session_config, v1.ConfigProto, "a `ConfigProto`"
            )
        self._session_config = session_config
        self._server: Any = None
        self._entered = False
        self._lost_secs, self._start_secs = lost_secs, start_secs
        self._group = GroupStop(self.config, lost_secs=lost_secs, start_secs=start_secs)

    @classmethod
    def from_flags(
        cls,
        *,
        ps_hosts: str | Iterable[str] | None,
        worker_hosts: str | Iterable[str] | None,
        job_name: str | None,
        task_index: int | str | None,
        **options: Any,
    ) -> SessionCluster:
        """Return a task whose place is given by TF1's flags instead of `TF_CONFIG`.

        Worker 0 is the chief. If nothing is given the job is local.

        Args:
          ps_hosts: the addresses of the parameter servers, with commas between them
            or as a list.
          worker_hosts: the addresses of the workers.
          job_name: `"ps"` or `"worker"`.
          task_index: the task's index in its job.
          **options: further arguments of the constructor.

        Raises:
          errors.InvalidArgumentError: such a cluster or task cannot exist; the
            message names the flag.
        """
        return cls(config_of(ps_hosts, worker_hosts, job_name, task_index), **options)

    @property
    def is_server(self) -> bool:
        """Return whether this task is a parameter server."""
        return self.config.task_type == "ps"

    @property
    def is_chief(self) -> bool:
        """Return whether this task initialises, saves and writes for all tasks."""
        return self.config.is_chief

    @property
    def num_replicas(self) -> int:
        """How many tasks compute gradients: the chief and the workers.

        It is what `SyncReplicasOptimizer` takes as `total_num_replicas`.
        """
        return max(1, len(trainers(self.config)))

    @property
    def target(self) -> str:
        """The session target; starts the server."""
        server = self.start()
        return "" if server is None else str(server.target)

    def start(self) -> Any:
        """Start this task's server, once.

        Returns:
          The `tf.distribute.Server`; None without a cluster.

        Raises:
          errors.ClusterError: this task's port is in use.
        """
        if self._server is None and self.config.cluster:
            self._server = start_server(self.config, self._session_config)
        return self._server

    def session_config(self, base: object = None) -> Any:
        """Return a `ConfigProto` whose sessions depend only on the parameter servers.

        So a session waits for no other worker, whether late or lost.

        Args:
          base: a `ConfigProto` to start from; it is not changed.
        """
        merged = v1.ConfigProto(allow_soft_placement=True)
        for source in (self._session_config, base):
            if source is not None:
                merged.MergeFrom(source)
        if self.config.cluster and not merged.device_filters:
            merged.device_filters.extend(["/job:ps", own_device(self.config)])
        return merged

    def device_setter(self) -> Any:
        """Return a device function for `tf.compat.v1.device`.

        It places variables on the servers in turn and other ops on this worker. Without
        a cluster it is None, which places nothing.
        """
        if not self.config.cluster:
            return None
        return v1.train.replica_device_setter(
            worker_device=own_device(self.config),
            cluster=tf.train.ClusterSpec(dict(self.config.cluster)),
        )

    @property
    def stop_reason(self) -> str | None:
        """Who stopped the job and why; None before a stop."""
        return self._group.reason

    @contextlib.contextmanager
    def training_session(
        self, hooks: Iterable[Any] = (), *, config: object = None, **options: Any
    ) -> Iterator[Any]:
        """Return a `MonitoredTrainingSession` of this task.

        On the chief SIGTERM stops the job, after a last checkpoint; on a worker it
        stops only this task. An error here stops the other tasks. With
        `checkpoint_dir` the chief also leaves a mark there when the job is over, for
        evaluators (`hb.loops.checkpoints_until_stop`).

        Args:
          hooks: `SessionRunHook`s, as `hb.as_hooks` makes them.
          config: a `ConfigProto`.
          **options: any other argument of `MonitoredTrainingSession` but `master`,
            `is_chief` and `stop_grace_period_secs`.

        Yields:
          The session. If the job is over already, it is one whose `should_stop` is
          true from the start.

        Raises:
          errors.ClusterError: a parameter server or the chief is gone.
          SystemExit: after the session, if the job was preempted or another task has
            failed (`hookbridge.ground.processes.exit_codes`).
        """
        group = self._group
        stop = GroupHook(group, joins=False, leaves=False)
        folder = options.get("checkpoint_dir")
        with ending_together(group, folder and str(folder), self._leave):
            options["scaffold"] = gated(options.get("scaffold"), group)
            try:
                group.connect(self.target)
                session = training_session(
                    [StepEndHook(group), *hooks, stop],
                    master=self.target,
                    is_chief=self.is_chief,
                    config=self.session_config(config),
                    **options,
                )
            except GroupStopped:
                yield FinishedSession()
                return
            # The other tasks are told of an error before the session ends.
            with session, stop_of_all(group):
                yield session

    def _leave(self) -> None:
        """Leave the job as the session ends, without `with SessionCluster()`."""
        if not self._entered:
            self._group.leave()

    def serve(self) -> None:
        """Serve as a parameter server until the job is over.

        Raises:
          errors.ClusterError: this task's port is in use, no task came, or all tasks
            that trained disappeared without leaving.
          SystemExit: the job is over and not done.
        """
        if not self.is_server:
            raise errors.ClusterError(
                f"`serve` was called in `{self._group.name}`; expected a task of type "
                "'ps'. Ask `is_server` first."
            )
        ending = serve(
            self.config,
            self.target,
            lost_secs=self._lost_secs,
            start_secs=self._start_secs,
        )
        end_with(ending.code, ending.reason)

    def __enter__(self) -> SessionCluster:
        # Checked here to fail before anything is built. The server starts only when it
        # is needed, since its configuration may still change.
        if self.config.cluster and self._server is None:
            check_own_port(self.config)
        self._entered = True
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self.is_server:
            return
        target = ""
        with contextlib.suppress(errors.ClusterError):  # `error` counts
            if self.config.cluster and (error is None or self._group.servers_listen()):
                target = self.target
        try:
            if error is not None and not self._group.stopped:
                stop_by(self._group, error, target)
        finally:
            self._group.leave(target)
