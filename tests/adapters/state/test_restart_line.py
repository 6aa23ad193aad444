"""A restart says on TensorFlow's logger where it goes on, with a line in every loop."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf
from moment_hosts import HOSTS, LAST, Ending, setter

ONE_KERAS = True


class _Lines(logging.Handler):
    """The texts of the lines about a restart, with their levels."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if text.startswith("hookbridge: training goes on from"):
            self.seen.append((record.levelname, text))


@pytest.fixture
def lines() -> Iterator[list[tuple[str, str]]]:
    handler = _Lines()
    tf.get_logger().addHandler(handler)
    yield handler.seen
    tf.get_logger().removeHandler(handler)


@pytest.mark.parametrize("host", HOSTS)
def test_a_restart_says_so(
    host: str, keras: Any, tmp_path: Path, lines: list[tuple[str, str]]
) -> None:
    run, folder = HOSTS[host], str(tmp_path)
    ended = Ending("hook", step=6, save_steps=2)
    run(keras, "variable", setter(keras, ended), folder, ended)
    assert not lines
    run(keras, "variable", setter(keras), folder, LAST)
    [(level, text)] = lines
    assert level == "INFO"
    assert "goes on from step 6, in epoch 1 (the first is 0), with the state in" in text
    assert "model.ckpt-6.hookbridge.json. Callbacks that go on: " in text
    assert text.endswith("The data starts over unless the loop restores its position.")


@pytest.mark.parametrize("level, count", [("NOTSET", 1), ("WARNING", 0)])
def test_the_level_of_the_logger_counts(
    level: str, count: int, keras: Any, tmp_path: Path, lines: list[tuple[str, str]]
) -> None:
    ended = Ending("hook", step=6, save_steps=2)
    logger, folder = tf.get_logger(), str(tmp_path)
    HOSTS["session"](keras, "variable", setter(keras, ended), folder, ended)
    for file in tmp_path.glob("*.hookbridge.*"):
        file.unlink()
    before = logger.level
    logger.setLevel(level)
    try:
        HOSTS["session"](keras, "variable", setter(keras), folder, LAST)
    finally:
        logger.setLevel(before)
    assert len(lines) == count
    assert all("model.ckpt-6. It has no state of callbacks" in t for _, t in lines)
