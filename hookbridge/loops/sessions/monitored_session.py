"""`MonitoredTrainingSession` with cheaper steps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import tensorflow as tf

from hookbridge.loops.sessions.callable_session import CallableSessionHook


def training_session(hooks: Iterable[Any] | None = None, **config: Any) -> Any:
    """A `MonitoredTrainingSession` whose steps run through callables.

    TensorFlow's own code calls the hooks, so that every event, merge, stop, error
    and recovery is as in `tf.compat.v1.train.MonitoredTrainingSession`; only the
    run of the merged fetches goes through `Session.make_callable`, once for each
    set of fetches.

        with hb.loops.training_session(hooks=hooks, checkpoint_dir=path) as session:
            while not session.should_stop():
                session.run(train_op)

    Args:
      hooks: `SessionRunHook`s.
      **config: any other argument of `MonitoredTrainingSession`.

    Returns:
      The `tf.compat.v1.train.MonitoredSession`.
    """
    return tf.compat.v1.train.MonitoredTrainingSession(
        hooks=[*(hooks or ()), CallableSessionHook()], **config
    )
