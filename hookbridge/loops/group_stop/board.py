"""The state that the processes of a job share about its end, on parameter server 0.

It consists of queues and handles in a container of their own and in graphs of their
own. So the model and its checkpoints get no variable, and the user's graph gets only
`token_ops`. A closed queue is a signal, such as a stop: all processes that wait on the
queue wake up at once when it is closed.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from typing import Any, NamedTuple

import tensorflow as tf

from hookbridge import exit_codes
from hookbridge.cluster import ClusterConfig
from hookbridge.loops.group_stop.close import limit_close
from hookbridge.loops.tasks.server import own_device

CONTAINER = "hookbridge"
CALL_MS = 5_000
CLOSE_SECS = 0.5
# The shared name that `SyncReplicasOptimizer` gives its queue.
SYNC_TOKENS = b"sync_token_q"

_raw = tf.raw_ops


def token_ops(graph: Any) -> list[Any]:
    """Operations that release one worker that waits in `SyncReplicasOptimizer`.

    Each operation puts one token of the current step into an optimizer's queue. A graph
    without such a queue gets none.
    """
    ops = []
    for op in graph.get_operations():
        if op.type == "FIFOQueueV2" and op.get_attr("shared_name") == SYNC_TOKENS:
            (dtype,) = op.get_attr("component_types")
            with tf.device(op.device), tf.control_dependencies(None):
                step = tf.cast(tf.compat.v1.train.get_global_step(graph), dtype)
                enqueue = tf.raw_ops.QueueEnqueueV2(
                    handle=op.outputs[0], components=[step]
                )
            ops.append(enqueue)
    return ops


class Ending(NamedTuple):
    """Who ended a job and why, and the exit code of all its processes."""

    reason: str
    code: int = exit_codes.DONE

    def to_text(self) -> str:
        """One text for both."""
        return f"{self.code} {self.reason}"

    @classmethod
    def of_text(cls, text: bytes) -> Ending:
        """What `to_text` wrote."""
        code, _, reason = text.decode(errors="replace").partition(" ")
        return cls(reason, int(code))


class StopBoard:
    """The shared state of one job; one object in each process.

    Servers may outlive a job. Each job on them has a number, its generation. The chief
    takes the next number when it finds that the last job was stopped.
    """

    def __init__(self, target: str, config: ClusterConfig) -> None:
        self._graph = tf.Graph()
        self._lock = threading.Lock()
        with self._graph.as_default():
            with tf.device("/job:ps/task:0"):
                self._generation = self._handle("generation", tf.int64)
                self._reason = self._handle("reason", tf.string)
            self._text = tf.compat.v1.placeholder(tf.string, shape=[])
            self._number = tf.compat.v1.placeholder(tf.int64, shape=[])
            self._set_generation = self._set(self._generation, self._number)
            self._set_reason = self._set(self._reason, self._text)
            self._get_generation = _raw.ReadVariableOp(
                resource=self._generation, dtype=tf.int64
            )
            self._get_reason = _raw.ReadVariableOp(
                resource=self._reason, dtype=tf.string
            )
            self._leave = [
                (
                    self._set(code_handle("ps", index), self._number),
                    left_queue(index, config.task_type, config.task_index).close(),
                )
                for index in range(len(config.cluster["ps"]))
            ]
        # This session waits only for the parameter servers.
        own = tf.compat.v1.ConfigProto(device_filters=["/job:ps", own_device(config)])
        self._session = tf.compat.v1.Session(target, graph=self._graph, config=own)
        # A training session that closes slowly delays the close of this one too.
        limit_close(self._session, CLOSE_SECS)

    def generation(self) -> int:
        """The number of the job on these servers; 0 before the first."""
        try:
            return int(self._run(self._get_generation))
        except tf.errors.FailedPreconditionError:
            return 0

    def begin(self, generation: int) -> None:
        """Begins a job; stops of earlier generations have no effect on it."""
        self._run(self._set_generation, {self._number: generation})

    def is_stopped(self, generation: int) -> bool:
        """Whether that job was stopped."""
        return bool(self._run(self._queue("stop", generation).closed))

    def stop(self, generation: int, ending: Ending) -> Ending:
        """Stops the job; returns how the first stop ends it."""
        if self.is_stopped(generation):
            return self.ending()
        self._run(self._set_reason, {self._text: ending.to_text()})
        self._run(self._queue("stop", generation).close)
        return ending

    def ending(self) -> Ending:
        """How the job was stopped."""
        with contextlib.suppress(tf.errors.OpError):
            return Ending.of_text(bytes(self._run(self._get_reason)))
        return Ending("no reason is known", exit_codes.LOST)

    def wait(self, name: str, generation: int, timeout_secs: float) -> bool:
        """Waits for `"stop"` or `"ready"`; returns whether it came in time."""
        try:
            self._run(
                self._queue(name, generation).wait, timeout_ms=int(timeout_secs * 1000)
            )
        except tf.errors.OutOfRangeError:  # it is closed
            return True
        except tf.errors.DeadlineExceededError:
            pass
        return False

    def ready(self, generation: int) -> None:
        """Tells that the chief has initialised the variables."""
        self._run(self._queue("ready", generation).close)

    def leave(self, code: int | None) -> None:
        """Tells every parameter server that this task no longer needs it.

        The chief also tells the exit code of the job.
        """
        for note, close in self._leave:
            with contextlib.suppress(tf.errors.OpError, RuntimeError):
                if code is not None:
                    self._run(note, {self._number: code})
                self._run(close)

    def close(self) -> None:
        """Ends the connection and all calls that wait in it."""
        with contextlib.suppress(tf.errors.OpError):
            self._session.close()

    def _run(self, fetch: Any, feeds: Any = None, timeout_ms: int = CALL_MS) -> Any:
        options = tf.compat.v1.RunOptions(timeout_in_ms=timeout_ms)
        return self._session.run(fetch, feeds, options=options)

    def _handle(self, name: str, dtype: Any) -> Any:
        return _raw.VarHandleOp(
            dtype=dtype, shape=[], container=CONTAINER, shared_name=name
        )

    def _set(self, handle: Any, value: Any) -> Any:
        return _raw.AssignVariableOp(resource=handle, value=value)

    @functools.cache  # noqa: B019 - lives as long as the graph
    def _queue(self, name: str, generation: int) -> _Signal:
        with (
            self._lock,
            self._graph.as_default(),
            tf.device("/job:ps/task:0"),
            self._graph.container(CONTAINER),
        ):
            queue = tf.queue.FIFOQueue(
                1, [tf.bool], shapes=[()], shared_name=f"{name}_{generation}"
            )
            return _Signal(queue.dequeue(), queue.close(), queue.is_closed())


def stop_job(target: str, config: ClusterConfig, ending: Ending) -> bool:
    """Stops a job from a process that is none of its trainers; False if none began."""
    board = StopBoard(target, config)
    try:
        generation = board.generation()
        if generation:  # there is a chief
            board.stop(generation, ending)
        return generation > 0
    finally:
        board.close()


class _Signal(NamedTuple):
    """A queue that stays empty: a dequeue waits until the queue is closed."""

    wait: Any
    close: Any
    closed: Any


def code_handle(job: str, index: int) -> Any:
    """A variable on the server of a task: the exit code of the job."""
    with tf.device(f"/job:{job}/task:{index}"):
        return _raw.VarHandleOp(
            dtype=tf.int64, shape=[], container=CONTAINER, shared_name="exit_code"
        )


def left_queue(server: int, job: str, index: int) -> Any:
    """A queue on parameter server `server`; a task closes it when it leaves."""
    graph = tf.compat.v1.get_default_graph()
    with tf.device(f"/job:ps/task:{server}"), graph.container(CONTAINER):
        return tf.queue.FIFOQueue(
            1, [tf.bool], shapes=[()], shared_name=f"left_{job}_{index}"
        )
