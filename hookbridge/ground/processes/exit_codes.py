"""The exit codes of every process of a job, for what started it (docs/your-cluster.md).

0 is done. Below 128 the same end would come again. From 128 on a new start goes on from
the last checkpoint; 143 has saved all. This is what the policy `ExitCode` of a TFJob
reads. All processes of a job end with one code: that of the stop that ended the job.

A process that is ending already gets another code by a standard error whose `flush`
ends the process. Python has no plainer step for that. An exception in a function of
`atexit` does not change the code. `os._exit` in such a function leaves out those that
were registered before it. After all of them, Python flushes `sys.stdout` and then
`sys.stderr`. Next it takes modules apart: a thread that comes back from TensorFlow may
then abort the process, with a code that nobody chose.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any

from hookbridge import errors
from hookbridge.ground.patching import assign

DONE = 0
FAILED = 1
USAGE = 2
RETRY_FROM = 128
INTERRUPTED = 130
# 128 + SIGPIPE, as in a shell: a reader such as `head` has gone.
READER_GONE = 141
# 128 + SIGUSR1, which operators leave to programs: another task is gone.
LOST = 138
# 128 + SIGTERM: what a scheduler sends before it takes a machine away.
PREEMPTED = 143

# Errors of calls to a task that is gone. Named, since this file imports no TensorFlow.
_LOST_CALLS = {"UnavailableError", "AbortedError"}
# What the text of a `DeadlineExceededError` names if the process that leads several
# workers no longer answers; a deadline of a program's own would come again.
_LEADER = "/tensorflow.CoordinationService/"
_TENSORFLOW = "tensorflow.python.framework.errors_impl"

_questions: list[Callable[[], int]] = []


def may_retry(code: int) -> bool:
    """Return whether a new start of the process may end otherwise."""
    return code >= RETRY_FROM


def of_error(error: BaseException) -> int:
    """Return the exit code of a process that this error ends."""
    if isinstance(error, SystemExit):
        if error.code is None or isinstance(error.code, int):
            return error.code or DONE
        return FAILED
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    is_lost = isinstance(error, errors.TaskLostError) or _is_of_lost_task(error)
    return LOST if is_lost else FAILED


def _is_of_lost_task(error: BaseException) -> bool:
    """Return whether TensorFlow raised an error because another task is gone."""
    kinds = {k.__name__ for k in type(error).__mro__ if k.__module__ == _TENSORFLOW}
    is_leader_gone = "DeadlineExceededError" in kinds and _LEADER in str(error)
    return is_leader_gone or not kinds.isdisjoint(_LOST_CALLS)


def ask_at_end(question: Callable[[], int]) -> None:
    """Ask this at the end of a command; `DONE` means that all is well."""
    if question not in _questions:
        _questions.append(question)


def of_done() -> int:
    """Return the exit code of a command that no error has ended."""
    return max((question() for question in _questions), default=DONE)


def use_for_errors() -> None:
    """Make an uncaught error end this process with `of_error` of it.

    Python itself ends with 1 after every error. The error is shown as before.
    """
    if not isinstance(sys.excepthook, _Hook):
        assign(sys, excepthook=_Hook(sys.excepthook))


def end_with(code: int) -> None:
    """Give this process, which is ending already, another exit code.

    For functions of `atexit` and for `sys.excepthook`. Those of others still run.
    """
    assign(sys, stderr=_EndsTheProcess(sys.stderr, code))


class _Hook:
    """`sys.excepthook`, which may raise `SystemExit`; `show` shows an error."""

    def __init__(self, show: Any) -> None:
        self._show = show

    def __call__(
        self, kind: type[BaseException], error: BaseException, trace: TracebackType
    ) -> None:
        self._show(kind, error, trace)
        if of_error(error) == LOST:
            # A thread that waits for the lost task may come back while Python ends,
            # which would abort the process with another code.
            end_with(LOST)
            raise SystemExit(LOST)


class _EndsTheProcess:
    """Standard error, whose last flush ends the process; the file's docstring says why.

    Args:
      stderr: the standard error that it takes the place of; all else is passed on.
      code: the exit code.
    """

    closed = False

    def __init__(self, stderr: Any, code: int) -> None:
        self._stderr = stderr
        self._code = code

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stderr, name)

    def flush(self) -> None:
        with contextlib.suppress(AttributeError, OSError, ValueError):  # it is closed
            self._stderr.flush()
        if sys.is_finalizing():
            os._exit(self._code)
