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


def shorten_log(config: ClusterConfig) -> None:
    """Shows on the terminal only one line for each lost server.

    The user's own handlers, for example of files, get every record.
    """
    logger = tf.get_logger()
    # The first record about each server; several threads write them.
    first: dict[int, logging.LogRecord] = {}

    def is_shown(record: logging.LogRecord) -> bool:
        text = record.getMessage()
        server = _SERVER.search(text)
        if not _RECORDS.search(text) or not (server or _DERIVED in text):
            return True
        if server and first.setdefault(int(server[1]), record) is record:
            index = int(server[1])
            logger.error(
                "hookbridge: parameter server %d (%s) is lost, which ends the fit. See "
                "what it printed, and start the job again: it goes on from its last "
                "checkpoint.",
                index,
                config.cluster["ps"][index],
            )
        # A filter of the terminal's handlers would miss those that are made later.
        for handler in (*logger.handlers, *logging.getLogger().handlers):
            if type(handler) is not logging.StreamHandler:
                handler.handle(record)
        return False

    logger.addFilter(is_shown)
