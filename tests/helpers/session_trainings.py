"""A training in a session that saves nothing by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def train_until_stop(
    session_of: Callable[..., Any], train_op: Any, hooks: Any, checkpoint_dir: Any
) -> None:
    """Runs a session's train op until a hook stops it; hooks save, if anything does.

    Args:
      session_of: makes the session, as `MonitoredTrainingSession` does.
      train_op: what is run.
      hooks: the hooks of the session.
      checkpoint_dir: where it goes on from.
    """
    with session_of(
        hooks=hooks,
        checkpoint_dir=str(checkpoint_dir),
        save_checkpoint_steps=None,
        save_checkpoint_secs=None,
        log_step_count_steps=None,
    ) as session:
        while not session.should_stop():
            session.run(train_op)
