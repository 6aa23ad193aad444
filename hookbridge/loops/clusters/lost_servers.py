"""One clear line about a lost parameter server instead of TensorFlow's hundreds."""

from __future__ import annotations

import logging
import re

import tensorflow as tf

from hookbridge.cluster import ClusterConfig

# Found in every record of the coordinator about a failed step.
_RECORDS = re.compile(r"Remote function on worker|error when processing closure")
_DERIVED = "This derived error is ignored"  # another record says what failed
_SERVER = re.compile(r"remote target /job:ps/replica:0/task:(\d+)")


class OneLineEach(logging.Filter):
    """Shows on the terminal only one line for each lost server.

    The user's own handlers, for example of files, get every record.
    """

    def __init__(self, config: ClusterConfig) -> None:
        super().__init__()
        self._config = config
        self._told: set[int] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the logger may show the record."""
        text = record.getMessage()
        if not _RECORDS.search(text):
            return True
        found, logger = _SERVER.search(text), tf.get_logger()
        if found is None and _DERIVED not in text:
            return True
        index = None if found is None else int(found[1])
        if index is not None and index not in self._told:
            self._told.add(index)
            logger.error(
                "hookbridge: parameter server %d (%s) is lost, which ends the fit. See "
                "what it printed, and start the job again: it goes on from its last "
                "checkpoint.",
                index,
                self._config.cluster["ps"][index],
            )
        for handler in (*logger.handlers, *logging.getLogger().handlers):
            if type(handler) is not logging.StreamHandler:
                handler.handle(record)
        return False


def shorten_log(config: ClusterConfig) -> None:
    """Shortens what TensorFlow's logger shows about lost servers."""
    tf.get_logger().addFilter(OneLineEach(config))
