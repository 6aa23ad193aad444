"""What the processes of a job write for each other on its parameter servers.

Notes and signals are in a container of their own and in graphs of their own. So the
model and its checkpoints get no variable, and the user's graph gets only `token_ops`.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from hookbridge.ground import collected
from hookbridge.ground.processes import exit_codes
from hookbridge.ground.processes.tf_config import ClusterConfig
from hookbridge.ground.protocols import Graph
from hookbridge.jobs.loops.tasks.server import device_of, limit_close, own_device

CONTAINER = "hookbridge"
CALL_MS = 5_000
CLOSE_SECS = 0.5
FIRST = "/job:ps/task:0"
# The shared name that `SyncReplicasOptimizer` gives its queue.
SYNC_TOKENS = b"sync_token_q"

_raw = tf.raw_ops


def token_ops(graph: Graph) -> list[Any]:
    """Return operations that release one worker that waits in `SyncReplicasOptimizer`.

    Each operation puts one token of the current step into an optimizer's queue. A graph
    without such a queue gets none.
    """
    ops = []
    for op in graph.get_operations():
        if op.type == "FIFOQueueV2" and op.get_attr("shared_name") == SYNC_TOKENS:
            (dtype,) = op.get_attr("component_types")
            with tf.device(op.device), tf.control_dependencies(None):
                step = tf.cast(collected.global_step(graph), dtype)
                enqueue = _raw.QueueEnqueueV2(handle=op.outputs[0], components=[step])
            ops.append(enqueue)
    return ops


class JobStop(NamedTuple):
    """Who ended a job and why, and the exit code of all its processes."""

    reason: str
    code: int = exit_codes.DONE


class Notes:
    """Texts by name on the server of a task, for all that reach it.

    The server keeps them until its process ends. The session has this target, and waits
    only for the tasks that `filters` names.
    """

    def __init__(
        self, target: str, task: str, filters: Sequence[str] = (), open_ms: int = 0
    ) -> None:
        self._task = task
        self._lock = threading.Lock()
        self._graph = tf.Graph()
        config = tf.compat.v1.ConfigProto(
            device_filters=filters or [task], operation_timeout_in_ms=open_ms
        )
        self._session = tf.compat.v1.Session(target, graph=self._graph, config=config)

    def write(self, name: str, text: object, task: str = "") -> None:
        """Write a note, in place of an earlier one, also on another server."""
        ops = self._note(name, task or self._task)
        self._run(ops.write, {ops.text: str(text)})

    def read(self, name: str) -> str | None:
        """Return the text of a note; None if nobody has written it."""
        try:
            return bytes(self._run(self._note(name, self._task).read)).decode()
        except tf.errors.FailedPreconditionError:
            return None

    def are_written(self, names: Sequence[str]) -> list[bool]:
        """Return whether somebody has written each note; of a busy server: not yet."""
        with contextlib.suppress(tf.errors.DeadlineExceededError):
            notes = [self._note(name, self._task) for name in names]
            return list(self._run([note.is_written for note in notes]))
        return [False] * len(names)

    def close(self) -> None:
        """End the connection and all calls that wait in it."""
        with contextlib.suppress(tf.errors.OpError):
            self._session.close()

    def _run(
        self, fetch: object, feeds: object = None, timeout_ms: int = CALL_MS
    ) -> Any:
        options = tf.compat.v1.RunOptions(timeout_in_ms=timeout_ms)
        return self._session.run(fetch, feeds, options=options)

    @functools.cache  # noqa: B019 - lives as long as the graph
    def _note(self, name: str, task: str) -> _Note:
        """Return the ops that write, read and look for a note on a task."""
        with self._lock, self._graph.as_default(), tf.device(task):
            handle = _raw.VarHandleOp(
                dtype=tf.string, shape=[], container=CONTAINER, shared_name=name
            )
            text = tf.compat.v1.placeholder(tf.string, shape=[])
            return _Note(
                text,
                _raw.AssignVariableOp(resource=handle, value=text),
                _raw.ReadVariableOp(resource=handle, dtype=tf.string),
                _raw.VarIsInitializedOp(resource=handle),
            )


class _Signal(NamedTuple):
    """The operations of the signal that a job has stopped."""

    wait: Any  # runs until another process runs `close`
    close: Any


class _Note(NamedTuple):
    """The operations of one note."""

    text: Any
    write: Any
    read: Any
    is_written: Any


def left_note(task_type: str, index: int) -> str:
    """Return the name of a task's note on each parameter server that it has left.

    The note of the chief has the exit code of the job.

    Args:
      task_type: the type of the task, such as "worker".
      index: its number among the tasks of this type.
    """
    return f"left_{task_type}_{index}"


class StopBoard(Notes):
    """The shared state of one job's end; one object in each process.

    Servers may outlive a job. Each job on them has a number, its generation. The chief
    takes the next number when it finds that the last job was stopped.
    """

    def __init__(self, target: str, config: ClusterConfig) -> None:
        # This session waits only for the parameter servers.
        super().__init__(target, FIRST, ["/job:ps", own_device(config)])
        # A training session that closes slowly delays the close of this one too.
        limit_close(self._session, CLOSE_SECS)
        self._own = left_note(config.task_type, config.task_index)
        self._servers = len(config.cluster["ps"])

    def generation(self) -> int:
        """Return the number of the job on these servers; 0 before the first."""
        return int(self.read("generation") or 0)

    def begin(self, generation: int) -> None:
        """Begin a job; stops of earlier generations have no effect on it."""
        self.write("generation", generation)

    def ending(self, generation: int) -> JobStop | None:
        """Return how that job was stopped; None if it was not."""
        text = self.read(f"stop_{generation}")
        if text is None:
            return None
        code, _, reason = text.partition(" ")
        return JobStop(reason, int(code))

    def stop(self, generation: int, ending: JobStop) -> JobStop:
        """Stop the job; return how the first stop ends it."""
        first = self.ending(generation)
        if first is None:
            self.write(f"stop_{generation}", f"{ending.code} {ending.reason}")
            self._run(self._signal(generation).close)
        return first or ending

    def wait_for_stop(self, generation: int, timeout_secs: float) -> JobStop | None:
        """Wait for a stop, which wakes all that wait at once; None if none came.

        The process that stopped the job may have died before it woke the others; its
        note still counts.
        """
        ended = (tf.errors.OutOfRangeError, tf.errors.DeadlineExceededError)
        with contextlib.suppress(*ended):
            self._run(
                self._signal(generation).wait, timeout_ms=int(timeout_secs * 1000)
            )
        return self.ending(generation)

    def is_ready(self, generation: int) -> bool:
        """Return whether the chief has initialised the variables."""
        return self.read(f"ready_{generation}") is not None

    def ready(self, generation: int) -> None:
        """Tell that the chief has initialised the variables."""
        self.write(f"ready_{generation}", "")

    def leave(self, code: int) -> None:
        """Tell every parameter server that this task no longer needs it."""
        for index in range(self._servers):
            with contextlib.suppress(tf.errors.OpError, RuntimeError):
                self.write(self._own, code, device_of("ps", index))

    @functools.cache  # noqa: B019 - lives as long as the graph
    def _signal(self, generation: int) -> _Signal:
        """Return the signal of a job: a queue that stays empty until it is closed."""
        with (
            self._lock,
            self._graph.as_default(),
            tf.device(FIRST),
            self._graph.container(CONTAINER),
        ):
            queue = tf.queue.FIFOQueue(
                1, [tf.bool], shapes=[()], shared_name=f"stopped_{generation}"
            )
            return _Signal(queue.dequeue(), queue.close())


def stop_job(target: str, config: ClusterConfig, ending: JobStop) -> bool:
    """Stop a job from a process that is none of its trainers.

    Args:
      target: the address of a server that can reach the parameter servers.
      config: the cluster of the job.
      ending: the reason and the exit code for all of its processes.

    Returns:
      Whether the job had begun; one that has not is not stopped.
    """
    board = StopBoard(target, config)
    try:
        generation = board.generation()
        if generation:  # there is a chief
            board.stop(generation, ending)
        return generation > 0
    finally:
        board.close()
