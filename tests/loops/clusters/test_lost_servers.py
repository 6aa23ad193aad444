"""The terminal shows one line for a lost parameter server, not TensorFlow's records."""

from __future__ import annotations

import io
import logging
import logging.handlers

import pytest
import tensorflow as tf

from hookbridge.cluster import ClusterConfig
from hookbridge.loops.clusters.lost_servers import shorten_log

CONFIG = ClusterConfig(
    {"chief": ("h:1",), "worker": ("h:2",), "ps": ("h:3",)}, "chief", 0
)
FAILED = "Remote function on worker /job:worker/replica:0/task:0 failed with "
SERVER = "UnavailableError(): from remote target /job:ps/replica:0/task:0"
DERIVED = "CancelledError():Cancelled\nThis derived error is ignored and not reported"


@pytest.mark.parametrize("order", [(SERVER, DERIVED, SERVER), (DERIVED, SERVER)])
def test_one_line_for_a_server(order: tuple[str, ...]) -> None:
    shown = io.StringIO()
    logger, terminal = tf.get_logger(), logging.StreamHandler(shown)
    mine = logging.handlers.MemoryHandler(100, flushLevel=100)  # a user's own
    logger.addHandler(terminal)
    logger.addHandler(mine)
    filters = logger.filters[:]
    shorten_log(CONFIG)
    try:
        for text in order:
            logger.error(FAILED + text)
        logger.error("something else")
        logger.error(FAILED + "ValueError(): mine")
    finally:
        logger.filters = filters
        logger.removeHandler(terminal)
        logger.removeHandler(mine)
    lost, other, error = shown.getvalue().splitlines()
    assert "parameter server 0 (h:3) is lost" in lost
    assert other == "something else" and error.endswith("ValueError(): mine")
    assert len(mine.buffer) == len(order) + 3
