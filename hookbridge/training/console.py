"""Prints the log lines of TensorFlow that a user needs."""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Callable, Iterator

_CLEAR = "\r\x1b[K"
Emit = Callable[[str], None]


def make_emit(*, to_stderr: bool) -> Emit:
    """A function that prints one line at once, in place of a line of progress."""

    def emit(line: str) -> None:
        stream = sys.stderr if to_stderr else sys.stdout
        over = _CLEAR if stream.isatty() and sys.stderr.isatty() else ""
        print(f"{over}{line}", file=stream, flush=True)

    return emit


class _HookLines(logging.Handler):
    """Passes on what `LoggingTensorHook` logs, and every warning."""

    def __init__(self, emit: Emit) -> None:
        super().__init__()
        self._emit = emit

    def emit(self, record: logging.LogRecord) -> None:
        if record.module == "deprecation":
            return  # TensorFlow marks most of the session API as deprecated
        if record.levelno >= logging.WARNING:
            self._emit(f"  {record.levelname.lower()}: {record.getMessage()}")
        elif record.funcName == "_log_tensors":
            self._emit(f"  LoggingTensorHook: {record.getMessage()}")


@contextlib.contextmanager
def hook_lines(emit: Emit) -> Iterator[None]:
    """Shows the lines of `LoggingTensorHook`; TensorFlow hides them by default."""
    import tensorflow as tf

    logger = tf.get_logger()
    before = (logger.level, logger.propagate, list(logger.handlers))
    logger.setLevel(logging.INFO)
    logger.propagate = False
    logger.handlers = [_HookLines(emit)]
    try:
        yield
    finally:
        level, logger.propagate, logger.handlers = before
        logger.setLevel(level)  # also clears the logger's cache of enabled levels
