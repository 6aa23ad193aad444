"""The line of a restart: with which state a training goes on."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import tensorflow as tf

from hookbridge.adapters.state.loop_state import Epoch

# The name of the function in log records of restarts: by it they are told apart.
RECORDED_AS = "log_restart"
_DATA = "The data starts over unless the loop restores its position."


def log_restart(
    path: str,
    step: int,
    epoch: Epoch | None,
    going_on: Sequence[str],
    starting_over: Sequence[str],
) -> None:
    """Log from where a training goes on, and which callbacks have their state.

    Args:
      path: the file with the state of callbacks.
      step: the global step of that state.
      epoch: the epoch of that state, if the loop had epochs.
      going_on: the callbacks that go on with their state.
      starting_over: the callbacks that have no state in the file.
    """
    moment = f"step {step}"
    if epoch is not None:
        where = "in" if epoch.is_open else "before"
        moment += f", {where} epoch {epoch.number} (the first is 0)"
    sentences = [f"training goes on from {moment}, with the state in {path}."]
    if going_on:
        sentences.append(f"Callbacks that go on: {', '.join(going_on)}.")
    if starting_over:
        sentences.append(f"Callbacks that start over: {', '.join(starting_over)}.")
    _log(" ".join([*sentences, _DATA]))


def log_without_state(prefix: str) -> None:
    """Log that a training goes on from a checkpoint that has no state of callbacks."""
    _log(
        f"training goes on from {prefix}. It has no state of callbacks, so they "
        f"start over. {_DATA}"
    )


def _log(text: str) -> None:
    """Log a line as INFO with TensorFlow's logger, unless its user has set a level.

    A program that sets none has Python's level, WARNING, and would see nothing.
    """
    logger: logging.Logger = tf.get_logger()
    if logger.level == logging.NOTSET or logger.isEnabledFor(logging.INFO):
        logger.handle(
            logger.makeRecord(
                logger.name,
                logging.INFO,
                __file__,
                0,
                "hookbridge: %s",
                (text,),
                None,
                RECORDED_AS,
            )
        )
