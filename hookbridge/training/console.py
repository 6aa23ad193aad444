"""Prints the log lines of TensorFlow that a user needs."""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Iterator

_CLEAR = "\r\x1b[K"


class _HookLines(logging.Handler):
    """Prints what `LoggingTensorHook` logs, and every warning, over the progress."""

    def __init__(self, to_stderr: bool) -> None:
        super().__init__()
        self._to_stderr = to_stderr

    def emit(self, record: logging.LogRecord) -> None:
        if record.module == "deprecation":
            return  # TensorFlow marks most of the session API as deprecated
        source = "LoggingTensorHook"
        if record.levelno >= logging.WARNING:
            source = record.levelname.lower()
        elif record.funcName != "_log_tensors":
            return
        stream = sys.stderr if self._to_stderr else sys.stdout
        over = _CLEAR if stream.isatty() and sys.stderr.isatty() else ""
        print(f"{over}  {source}: {record.getMessage()}", file=stream, flush=True)


@contextlib.contextmanager
def hook_lines(*, to_stderr: bool) -> Iterator[None]:
    """Shows the lines of `LoggingTensorHook`; TensorFlow hides them by default."""
    import tensorflow as tf

    logger = tf.get_logger()
    before = (logger.level, logger.propagate, list(logger.handlers))
    logger.setLevel(logging.INFO)
    logger.propagate = False
    logger.handlers = [_HookLines(to_stderr)]
    try:
        yield
    finally:
        level, logger.propagate, logger.handlers = before
        logger.setLevel(level)  # also clears the logger's cache of enabled levels
