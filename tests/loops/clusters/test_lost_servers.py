"""What the terminal shows of TensorFlow's records about a lost parameter server."""

from __future__ import annotations

import logging

import pytest
import tensorflow as tf

from hookbridge.cluster import ClusterConfig
from hookbridge.loops.clusters.lost_servers import OneLineEach

CONFIG = ClusterConfig(
    {"chief": ("h:1",), "worker": ("h:2",), "ps": ("h:3",)}, "chief", 0
)
FAILED = "Remote function on worker /job:worker/replica:0/task:0 failed with "
SERVER = "UnavailableError(): from remote target /job:ps/replica:0/task:0"
DERIVED = "CancelledError():Cancelled\nThis derived error is ignored and not reported"


@pytest.mark.parametrize("order", [(SERVER, DERIVED, SERVER), (DERIVED, SERVER)])
def test_one_line_for_a_server(
    order: tuple[str, ...], capfd: pytest.CaptureFixture[str]
) -> None:
    logger, only_line = tf.get_logger(), OneLineEach(CONFIG)
    terminal = logging.StreamHandler()
    logger.addFilter(only_line)
    logger.addHandler(terminal)
    try:
        for text in order:
            logger.error(FAILED + text)
        logger.error("Something else")
        logger.error(FAILED + "ValueError(): mine")
    finally:
        logger.removeHandler(terminal)
        logger.removeFilter(only_line)
    shown = capfd.readouterr().err.splitlines()
    lost = [line for line in shown if "parameter server 0 (h:3) is lost" in line]
    others = [line for line in shown if line not in lost]
    assert len(set(lost)) == 1
    assert not [
        line for line in others if "derived" in line or "UnavailableError" in line
    ]
    assert any("Something else" in line for line in others)
    assert any("mine" in line for line in others)
