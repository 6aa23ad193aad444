"""One process's part in the common stop of a job."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf
from absl import logging

from hookbridge import errors
from hookbridge.ground.arguments import seconds
from hookbridge.ground.processes import exit_codes
from hookbridge.ground.processes.exit_threads import start_awaited
from hookbridge.ground.processes.tf_config import ClusterConfig
from hookbridge.jobs.loops.group_stop.board import JobStop, StopBoard
from hookbridge.jobs.loops.group_stop.step_watch import StepWatch, last_resort
from hookbridge.jobs.loops.group_stop.stop_requests import StopRequests
from hookbridge.jobs.loops.tasks import ports
from hookbridge.jobs.loops.tasks.task_checks import tasks_of, trainers

POLL_SECS = 2.0
START_POLL_SECS = 0.5  # until all other processes have been seen
LOST_SECS = 20.0
START_SECS = 600.0
# A worker that finds the job over waits this long for the next job to begin.
LATE_SECS = 5.0
# How long the servers of a preempted job take to end, at most, once its chief has left.
# Others may stay for the next job.
LEAVING_SECS = 10.0


class GroupStopped(Exception):
    """Ends a wait in a process whose job is over."""


class GroupStop:
    """Waits for a stop of the job on a thread, and can stop the job.

    The thread waits in one call on parameter server 0, which returns when any process
    stops the job. So steps have no extra cost.
    """

    def __init__(
        self,
        config: ClusterConfig,
        *,
        lost_secs: float = LOST_SECS,
        start_secs: float = START_SECS,
    ) -> None:
        self.config = config
        self.lost_secs: float = seconds("lost_secs", lost_secs)
        self.name: str = f"{config.task_type} {config.task_index}"
        # Why the job was stopped, with the task that asked, and this process's code.
        self.reason: str | None = None
        self.code: int = exit_codes.DONE
        # A task that this process needs is gone; the main thread raises it.
        self.error: errors.ClusterError | None = None
        # An error of this process, not the effect of a stop.
        self.failed: bool = False
        self.watch: StepWatch = StepWatch()
        self.requests: StopRequests = StopRequests()  # of this process's guests
        # Tells how the job has ended without this process, if it seems so.
        self.ask_ending: Callable[[], JobStop | None] = lambda: None
        self._start_secs = seconds("start_secs", start_secs)
        self._board: StopBoard | None = None
        self._generation = 0
        self._stopped = threading.Event()
        # Set when the main thread needs no more help.
        self.helpers_end: threading.Event = threading.Event()

    @property
    def stopped(self) -> bool:
        """Return whether this process is to stop."""
        return self._stopped.is_set()

    def connect(self, target: str) -> None:
        """Join the job; return once its chief has begun it."""
        if exit_codes.may_retry(self.code):  # SIGTERM came before the session
            raise GroupStopped(self.reason)
        if "ps" not in self.config.cluster:  # no other process to share a stop with
            self._stopped.clear()
            return
        if self._board is not None and not self.stopped:
            return
        self._check_error()
        self._stopped.clear()
        self.helpers_end.clear()
        self.reason, self.failed, self.watch = None, False, StepWatch()
        self.requests = StopRequests()
        self.code = exit_codes.DONE
        self.wait_for_servers()
        if self._board is not None:
            self._board.close()
        try:
            self._board = StopBoard(target, self.config)
            take_part = self._begin if self.config.is_chief else self._join
            self._generation = take_part(self._board)
        except tf.errors.OpError as e:
            self.wait_for_servers()  # raises `GroupStopped` if the job is over
            raise self.lost(tasks_of(self.config, "ps"), 0.0) from e
        for follow in (self._follow_stop, self._follow_tasks):
            start_awaited(self.helpers_end, follow)

    def wait_for_servers(self) -> None:
        """Return once all parameter servers listen."""
        limit = self._start_secs if self._board is None else self.lost_secs
        began = time.monotonic()
        missing = tasks_of(self.config, "ps")
        while missing := self._silent(missing):
            waited = time.monotonic() - began
            if waited > LATE_SECS and (ending := self.ask_ending()):
                text = "the job was over, and its servers had left"
                self.stop_here(text, ending.code)
            self.check()
            if waited > limit:
                raise self.lost(missing, limit)
            time.sleep(0.2)

    def servers_listen(self) -> bool:
        """Return whether all parameter servers listen now."""
        return not self._silent(tasks_of(self.config, "ps"))

    def _silent(self, tasks: Sequence[ports.Task]) -> list[ports.Task]:
        return [task for task in tasks if not ports.is_listening(self.config, *task)]

    def wait_until_ready(self) -> None:
        """Return once the chief has initialised the variables.

        TensorFlow's own worker looks only every 30 seconds.
        """
        if self._board is None or self.config.is_chief:
            return
        deadline = time.monotonic() + self._start_secs
        while not self._guarded(lambda board: board.is_ready(self._generation)):
            self.check()
            time.sleep(0.2)
            if time.monotonic() > deadline:
                raise errors.TaskLostError(
                    f"The chief has not initialised the variables within "
                    f"{self._start_secs:g} s; `{self.name}` waited for it. See what "
                    "the chief printed."
                )

    def check(self) -> None:
        """Raise if this process must stop waiting."""
        self._check_error()
        if self.stopped:
            raise GroupStopped(self.reason)

    def ready(self) -> None:
        """Tell the workers that the variables are initialised; for the chief."""
        self._guarded(lambda board: board.ready(self._generation))

    def request(self, reason: str, code: int = exit_codes.DONE) -> None:
        """Stop every process of the job.

        Args:
          reason: why, for the messages of all of them.
          code: the exit code of all of them.
        """
        if self.helpers_end.is_set() or self.stopped:
            return
        # The other processes are told first. When this process stops, it closes things
        # that wake them too, and then they must know the reason.
        own_stop = JobStop(f"{self.name}: {reason}", code)
        first = self._guarded(lambda board: board.stop(self._generation, own_stop))
        self.stop_here(*(first if isinstance(first, JobStop) else own_stop))

    def stop_here(self, reason: str, code: int = exit_codes.DONE) -> None:
        """Stop only this process."""
        if not self.stopped:
            self.reason, self.code = reason, code
            logging.info("hookbridge: this process stops. %s", reason)
            self._stopped.set()
            start_awaited(self.helpers_end, self.watch.wake, self.helpers_end)

    def fail(self, error: errors.ClusterError) -> None:
        """Stop this process because a task that it needs is gone."""
        self.error = error
        self.stop_here(str(error), exit_codes.of_error(error))

    def leave(self, target: str = "") -> None:
        """Tell the parameter servers that this process no longer needs them.

        A process that never had a session, because the job was done before, tells it
        through its own server, `target`.
        """
        if self.helpers_end.is_set():
            return
        self.helpers_end.set()
        if self._board is None and target and not self.stopped:
            deadline = time.monotonic() + LEAVING_SECS
            # They may begin later than this process.
            while not self.servers_listen() and time.monotonic() < deadline:
                time.sleep(0.2)
            if self.servers_listen():
                self._board = StopBoard(target, self.config)
        # After an error a server may be gone. Then calls would not return, so the
        # connection stays open.
        if self._board is not None and self.error is None:
            self._board.leave(self.code)
            self._board.close()

    def lost(self, tasks: Sequence[ports.Task], secs: float) -> errors.TaskLostError:
        """Return the error about tasks that are gone.

        Args:
          tasks: `(job, index)` of each.
          secs: for how long none of them could be reached.
        """
        return errors.TaskLostError(
            f"{ports.named(self.config, tasks)} cannot be reached"
            f"{ports.lasting(secs)}; `{self.name}` expected a server that listens "
            "there. It was not started, has ended or was killed: see what it printed, "
            "and start the job again: it goes on from its last checkpoint."
        )

    def _follow_stop(self) -> None:
        while not self.helpers_end.is_set() and not self.stopped:
            board = self._board
            if board is None:  # the process has no connection to others
                return
            try:
                if ending := board.wait_for_stop(self._generation, POLL_SECS):
                    self.stop_here(*ending)
            except (tf.errors.OpError, RuntimeError):  # gone, or closed by `leave`
                self.helpers_end.wait(0.5)

    def _follow_tasks(self) -> None:
        """Fail if a needed task is gone; free a step that waits for a lost worker."""
        # This thread does not call TensorFlow: a call to a lost server may never
        # return.
        config = self.config
        needed = {config.chief, *tasks_of(config, "ps")}
        followed = {*trainers(config), *needed} if config.is_chief else needed
        own_task = (config.task_type, config.task_index)
        liveness = ports.Liveness(config, sorted(followed - {own_task}))
        liveness.look()
        while not self.helpers_end.wait(
            POLL_SECS if liveness.complete else START_POLL_SECS
        ):
            liveness.look()
            # A task may have come and gone between two looks.
            away = liveness.away(self.lost_secs, unseen_secs=self.lost_secs)
            needed_away = [task for task in away if task in needed]
            if needed_away and not self.stopped:
                self.fail(self.lost(needed_away, self.lost_secs))
            if self.error is not None:
                last_resort(self.error, self.helpers_end)
                return
            missing = liveness.away(0.0, unseen_secs=self.lost_secs)
            let_through = self.watch.let_one_through
            if missing and let_through and self.watch.is_stalled() and not self.stopped:
                # The gradient and the token of the lost worker are missing: without
                # them the step would wait for ever.
                start_awaited(self.helpers_end, let_through)

    def _check_error(self) -> None:
        if self.error is not None:
            raise self.error

    def _begin(self, board: StopBoard) -> int:
        """Return the number of the job, which the chief begins unless one goes on."""
        began = time.monotonic()
        while True:
            generation = board.generation()
            ending = board.ending(generation) if generation else None
            preempted = ending is not None and exit_codes.may_retry(ending.code)
            if not preempted or time.monotonic() - began >= LEAVING_SECS:
                break
            # The servers of that job are about to end, with its queues. Then the next
            # call fails.
            time.sleep(0.2)
        if not generation or ending is not None:
            generation += 1
            board.begin(generation)
        return generation

    def _join(self, board: StopBoard) -> int:
        """Return the number of the job that another process has begun."""
        began = time.monotonic()
        while True:
            generation = board.generation()
            ending = board.ending(generation) if generation else None
            waited = time.monotonic() - began
            if generation and ending is None:
                return generation
            if ending is not None and waited > LATE_SECS:
                self.stop_here(f"the job was over: {ending.reason}", ending.code)
                return generation
            if waited > self._start_secs:
                raise self.lost([self.config.chief], self._start_secs)
            time.sleep(0.2)

    def _guarded(self, call: Callable[[StopBoard], Any]) -> Any:
        """Call `call` with the board, if there is one; ignore lost servers."""
        if self._board is None:
            return True
        with contextlib.suppress(tf.errors.OpError, RuntimeError):
            return call(self._board)
        time.sleep(0.1)
        return False
