"""One process's part in the common stop of a job."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf
from absl import logging

from hookbridge import errors
from hookbridge.loops import session_cluster_ports as ports
from hookbridge.loops.cluster import CHIEF_TYPES, ClusterConfig
from hookbridge.loops.group_stop_board import StopBoard, SyncTokens

POLL_SECS = 2.0
LOST_SECS = 20.0
START_SECS = 600.0
# A worker whose step does not end by itself after a stop is interrupted after this.
INTERRUPT_SECS = 4.0
# A process whose main thread nothing can wake ends itself after this.
LAST_RESORT_SECS = 20.0
# A worker that finds the job stopped waits this long for a chief that begins anew.
LATE_SECS = 5.0


class GroupStopped(Exception):
    """Ends what waits for a job that is over."""


class GroupStop:
    """Follows the stop of the job on a thread, and asks for it.

    The thread waits in one call on parameter server 0 that returns when anybody
    stops the job, so that a step costs nothing more than without it.

    Attributes:
      reason: why the job was stopped, with the task that asked; None before.
      interrupted: whether the main thread's last step was ended from here.
      error: why it cannot go on, if that is an error; the main thread raises it.
    """

    def __init__(
        self,
        config: ClusterConfig,
        *,
        lost_secs: float = LOST_SECS,
        start_secs: float = START_SECS,
    ) -> None:
        self.config = config
        self.name = f"{config.task_type} {config.task_index}"
        self.reason: str | None = None
        self.interrupted = False
        self.error: errors.ClusterError | None = None
        self._lost_secs = lost_secs
        self._start_secs = start_secs
        self._board: StopBoard | None = None
        self._generation = 0
        self._stopped = threading.Event()
        self._over = threading.Event()  # the main thread needs no help any more
        self._tokens: Sequence[SyncTokens] = ()
        self._interrupt: Callable[[], None] | None = None

    @property
    def stopped(self) -> bool:
        """Whether this process is to stop."""
        return self._stopped.is_set()

    @property
    def is_local(self) -> bool:
        """Whether there is nobody to share a stop with."""
        return "ps" not in self.config.cluster

    def connect(self, target: str) -> None:
        """Joins the job; returns once its chief has begun it.

        Args:
          target: the session target of this process's server.

        Raises:
          errors.ClusterError: a parameter server or the chief is not there in time.
        """
        if self.is_local:
            self._stopped.clear()
            return
        if self._board is not None and not self.stopped:
            return
        self.check_error()
        self._stopped.clear()
        self._over.clear()
        self.reason, self.interrupted = None, False
        self.wait_for_servers()
        if self._board is not None:
            self._board.close()
        self._board = StopBoard(target, self.config)
        self._generation = self._join(self._board)
        threading.Thread(target=self._follow, name="group_stop", daemon=True).start()

    def wait_for_servers(self) -> None:
        """Returns once all parameter servers listen.

        Raises:
          errors.ClusterError: one does not in time.
          GroupStopped: the job was stopped meanwhile.
        """
        limit = self._start_secs if self._board is None else self._lost_secs
        deadline = time.monotonic() + limit
        missing = list(range(len(self.config.cluster.get("ps", ()))))
        while True:
            missing = [
                i for i in missing if not ports.is_listening(self.config, "ps", i)
            ]
            if not missing:
                return
            self.check()
            if time.monotonic() > deadline:
                raise self._lost([("ps", i) for i in missing], limit)
            time.sleep(0.2)

    def wait_until_ready(self) -> None:
        """Returns once the chief has initialised the variables.

        TensorFlow's own worker looks every 30 seconds only.

        Raises:
          errors.ClusterError: the chief does not do it in time.
          GroupStopped: the job was stopped meanwhile.
        """
        if self._board is None or self.config.is_chief:
            return
        deadline = time.monotonic() + self._start_secs
        while not self._guarded(
            lambda board: board.wait("ready", self._generation, POLL_SECS)
        ):
            self.check()
            if time.monotonic() > deadline:
                raise errors.ClusterError(
                    f"The chief has not initialised the variables within "
                    f"{self._start_secs:g} s; `{self.name}` waited for it. See what "
                    "the chief printed."
                )

    def check_error(self) -> None:
        """Raises if a task that is needed is gone.

        Raises:
          errors.ClusterError: it is.
        """
        if self.error is not None:
            raise self.error

    def check(self) -> None:
        """Raises what ends this process's wait.

        Raises:
          errors.ClusterError: a task that is needed is gone.
          GroupStopped: the job was stopped.
        """
        self.check_error()
        if self.stopped:
            raise GroupStopped(self.reason)

    def ready(self) -> None:
        """Tells the workers that the variables are initialised; for the chief."""
        self._guarded(lambda board: board.ready(self._generation))

    def request(self, reason: str) -> None:
        """Stops every process of the job."""
        if self._over.is_set() or self.stopped:
            return
        self.stop_here(f"{self.name}: {reason}")
        text = self.reason or reason
        self._guarded(lambda board: board.stop(self._generation, text))

    def stop_here(self, reason: str) -> None:
        """Stops this process and no other."""
        if not self.stopped:
            self.reason = reason
            logging.info("hookbridge: this process stops. %s", reason)
            self._stopped.set()
            threading.Thread(target=self._release, daemon=True).start()

    def release_with(
        self, tokens: Sequence[SyncTokens], interrupt: Callable[[], None] | None
    ) -> None:
        """Says how a step that waits for others is ended after a stop.

        Args:
          tokens: the queues in which `SyncReplicasOptimizer` makes workers wait.
          interrupt: ends any other step, if it may be ended.
        """
        self._tokens, self._interrupt = tokens, interrupt

    def settled(self) -> None:
        """The main thread is out of its last step: nothing is to be interrupted."""
        self._interrupt = None

    def leave(self) -> None:
        """Takes leave: this process needs the parameter servers no more."""
        if self._over.is_set():
            return
        self._over.set()
        if self._board is not None:
            if self.error is None:
                self._board.leave(self.name)
            self._board.close()

    # --- on the thread -----------------------------------------------------------

    def _join(self, board: StopBoard) -> int:
        found = time.monotonic()
        deadline = found + self._start_secs
        while True:
            number = board.generation()
            stopped = number and board.is_stopped(number)
            if self.config.is_chief:
                if not number or stopped:
                    number += 1
                    board.begin(number)
                return number
            if number and not stopped:
                return number
            now = time.monotonic()
            if stopped and now - found > LATE_SECS:
                self.stop_here(f"the job was over: {board.reason()}")
                return number
            if now > deadline:
                raise self._lost([_chief(self.config)], self._start_secs)
            time.sleep(0.2)

    def _follow(self) -> None:
        needed = [_chief(self.config)]
        needed += [("ps", i) for i in range(len(self.config.cluster["ps"]))]
        own = (self.config.task_type, self.config.task_index)
        liveness = ports.Liveness(
            self.config,
            [task for task in needed if task != own],
            lost_secs=self._lost_secs,
        )
        while not self._over.is_set():
            board = self._board
            assert board is not None
            try:
                if board.wait("stop", self._generation, POLL_SECS):
                    self.stop_here(board.reason())
                    return
            except (tf.errors.OpError, RuntimeError):  # gone, or closed by `leave`
                self._over.wait(0.5)
            gone = liveness.lost() if not self._over.is_set() else []
            if gone and not self.stopped:
                self.error = self._lost(gone, self._lost_secs)
                self.stop_here(str(self.error))
                self._last_resort(self.error)
                return

    def _release(self) -> None:
        """After a stop: wakes the main thread where it waits for others."""
        for tokens in self._tokens:
            self._guarded(functools.partial(_release, tokens=tokens))
        if not self._over.wait(INTERRUPT_SECS):
            interrupt, self._interrupt = self._interrupt, None
            if interrupt is not None:
                self.interrupted = True
                interrupt()

    def _last_resort(self, error: errors.ClusterError) -> None:
        # A thread inside TensorFlow that waits for a server which is gone cannot be
        # woken; a process that stays for ever is worse than one that ends like this.
        if not self._over.wait(LAST_RESORT_SECS):
            sys.stderr.write(f"hookbridge: ClusterError: {error}\n")
            sys.stderr.flush()
            os._exit(1)

    def _guarded(self, call: Callable[[StopBoard], Any]) -> Any:
        """Calls, unless there is nobody to call; an unreachable server is no error."""
        board = self._board
        if board is None:
            return True
        with contextlib.suppress(tf.errors.OpError, RuntimeError):
            return call(board)
        time.sleep(0.1)
        return False

    def _lost(
        self, tasks: Sequence[tuple[str, int]], secs: float
    ) -> errors.ClusterError:
        names = ", ".join(
            f"`{job}` {index} ({self.config.cluster[job][index]})"
            for job, index in tasks
        )
        return errors.ClusterError(
            f"{names} cannot be reached since {secs:g} s; `{self.name}` expected a "
            "server that listens there. It was not started, has ended or was "
            "killed: see what it printed, and start the job again: it goes on from "
            "its last checkpoint."
        )


def _chief(config: ClusterConfig) -> tuple[str, int]:
    job = next((job for job in CHIEF_TYPES if job in config.cluster), "worker")
    return job, 0


def _release(board: StopBoard, tokens: SyncTokens) -> None:
    board.release(tokens)
