"""Between-graph training on a cluster that ends."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Any

import tensorflow as tf
from absl import logging

from hookbridge import errors
from hookbridge.loops import session_cluster_ports as ports
from hookbridge.loops import session_cluster_serve as serving
from hookbridge.loops.cluster import TASK_TYPES, ClusterConfig
from hookbridge.loops.group_stop import LOST_SECS, START_SECS, GroupStop, GroupStopped
from hookbridge.loops.group_stop_hook import GroupStopHook, StepEndHook, fail_fast
from hookbridge.loops.session_cluster_signals import on_sigterm

v1 = tf.compat.v1


class SessionCluster:
    """One task of a between-graph cluster: chief, worker or parameter server.

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

    All processes end within seconds of the last step, whoever stops first and for
    whatever reason: a stop in one is the stop of all, parameter servers included.
    Without `TF_CONFIG` the same program trains in one process.

    Attributes:
      config: the cluster and this task.
    """

    def __init__(
        self,
        config: ClusterConfig | None = None,
        *,
        session_config: Any = None,
        lost_secs: float = LOST_SECS,
        start_secs: float = START_SECS,
    ) -> None:
        """Configures the task; nothing is started before `start`.

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
            parameter server, nobody is the chief, or the task is none that trains
            or serves.
        """
        self.config = config if config is not None else ClusterConfig.from_environment()
        _check_roles(self.config)
        fail_fast()
        self._session_config = session_config
        self._server: Any = None
        self._entered = False
        self._lost_secs, self._start_secs = lost_secs, start_secs
        self._group = GroupStop(self.config, lost_secs=lost_secs, start_secs=start_secs)

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
        return max(1, len(serving.trainers(self.config)))

    @property
    def target(self) -> str:
        """The session target; starts the server."""
        server = self.start()
        return "" if server is None else str(server.target)

    @property
    def stop_reason(self) -> str | None:
        """Who stopped the job and why; None before."""
        return self._group.reason

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
                f"The server of `{self._group.name}` has started with {max(1, has)} "
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

    @contextlib.contextmanager
    def training_session(
        self, hooks: Iterable[Any] = (), *, config: Any = None, **options: Any
    ) -> Iterator[Any]:
        """A `MonitoredTrainingSession` of this task.

        SIGTERM stops the job if this is the chief, after its last checkpoint, and
        only this task if it is not. An error here stops the others.

        Args:
          hooks: `SessionRunHook`s, as `hb.as_hooks` makes them.
          config: a `ConfigProto`.
          **options: any other argument of `MonitoredTrainingSession` but `master`,
            `is_chief` and `stop_grace_period_secs`.

        Yields:
          The session. Where the job is over before it began, one that says so
          from the start.

        Raises:
          errors.ClusterError: a parameter server or the chief is gone.
        """
        from hookbridge.loops.monitored_session import training_session

        group = self._group
        stop = GroupStopHook(self.config, group=group)
        with self._leaving(), on_sigterm(self._terminated), self._stop_is_no_error():
            with self._stop_of_all():
                group.connect(self.target)
                options["scaffold"] = self._gated(options.get("scaffold"))
                try:
                    session = training_session(
                        [StepEndHook(group), *hooks, stop],
                        master=self.target,
                        is_chief=self.is_chief,
                        config=self.session_config(config),
                        **options,
                    )
                except GroupStopped:
                    session = None
            if session is None:
                yield _OverSession()
                return
            with session, self._stop_of_all():
                yield session

    @contextlib.contextmanager
    def _leaving(self) -> Iterator[None]:
        """Without `with SessionCluster()`, the session's end is this task's."""
        try:
            yield
        finally:
            if not self._entered:
                self._group.leave()

    def serve(self) -> None:
        """Serves as a parameter server until the job is over.

        Raises:
          errors.ClusterError: this task's port is in use, or all that trained are
            gone without taking leave.
        """
        if not self.is_server:
            raise errors.ClusterError(
                f"`serve` was called in `{self._group.name}`; expected a task of type "
                "'ps'. Ask `is_server` first."
            )
        serving.serve(
            self.config,
            self.target,
            lost_secs=self._lost_secs,
            start_secs=self._start_secs,
        )

    def __enter__(self) -> SessionCluster:
        # Before anything is built: the port is this task's, or it ends here. The
        # server waits for its configuration until somebody needs it.
        if self.config.cluster and self._server is None:
            ports.check_own_port(self.config)
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
        if error is not None and not self._group.stopped:
            self._fail(error)
        self._group.leave()

    def _fail(self, error: BaseException) -> None:
        with contextlib.suppress(errors.ClusterError, GroupStopped):
            if all(
                ports.is_listening(self.config, "ps", i)
                for i in range(len(self.config.cluster.get("ps", ())))
            ):
                self._group.connect(self.target)
        self._group.request(f"{type(error).__name__}: {error}")

    def _terminated(self) -> None:
        if self.is_chief:
            self._group.request("it received SIGTERM")
        else:
            self._group.stop_here("this task received SIGTERM")

    @contextlib.contextmanager
    def _stop_of_all(self) -> Iterator[None]:
        """Whatever leaves this block by an exception stops the others."""
        group = self._group
        try:
            yield
        except GroupStopped:
            raise
        except BaseException as e:
            if group.step.interrupted:
                raise GroupStopped(group.reason) from e
            group.step.began = None
            clean = isinstance(e, (tf.errors.OutOfRangeError, StopIteration))
            group.request("its data ended" if clean else f"{type(e).__name__}: {e}")
            raise

    @contextlib.contextmanager
    def _stop_is_no_error(self) -> Iterator[None]:
        """A step that was ended from outside is the end; a lost task is the error."""
        group = self._group
        try:
            yield
        except GroupStopped:
            logging.info("hookbridge: the last step was ended: %s", group.reason)
        except Exception as e:
            if group.error is not None and e is not group.error:
                raise group.error from e
            # The servers do not wait for a task whose last step takes very long.
            late = isinstance(e, (tf.errors.UnavailableError, tf.errors.AbortedError))
            if not (late and group.stopped):
                raise
            logging.warning("hookbridge: too late for its end: %s", group.reason)
        if group.error is not None:
            raise group.error

    def _gated(self, scaffold: Any) -> Any:
        """A scaffold that waits before a session is created, also in a recovery."""
        scaffold = scaffold or v1.train.Scaffold()
        finalize, group = scaffold.finalize, self._group

        def gated() -> Any:
            finalize()
            group.check()
            group.wait_for_servers()
            group.wait_until_ready()
            return scaffold

        scaffold.finalize = gated
        return scaffold


class _OverSession:
    """Stands for a session of a job that was over before it began here."""

    def should_stop(self) -> bool:
        return True

    def run(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("Run called even after should_stop requested.")


def _check_roles(config: ClusterConfig) -> None:
    jobs = config.cluster
    if not jobs:
        return
    if "ps" not in jobs:
        raise errors.InvalidArgumentError(
            f"TF_CONFIG['cluster'] has the jobs {', '.join(jobs)}; expected also 'ps': "
            "the workers share their variables through parameter servers. Add one, or "
            "leave TF_CONFIG out to train in one process."
        )
    if not serving.trainers(config):
        raise errors.InvalidArgumentError(
            f"TF_CONFIG['cluster'] has the jobs {', '.join(jobs)}; expected also "
            "'chief' or 'worker': nobody trains."
        )
    if config.task_type not in jobs or config.task_type == "evaluator":
        trained = ", ".join(job for job in TASK_TYPES if job in jobs)
        raise errors.InvalidArgumentError(
            f"TF_CONFIG['task']['type'] is {config.task_type!r}; expected one of "
            f"{trained}. An evaluator reads checkpoints: see "
            "`hb.loops.checkpoints_until_stop`."
        )
