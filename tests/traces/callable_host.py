"""A host whose monitored sessions run through callables.

The scenarios ask TensorFlow for their monitored sessions. Here each session gets a
`CallableSessionHook` after its own hooks, as in `hb.loops.training_session`. Even the
first run of a set of fetches goes through a callable: most scenarios are too short
to repeat a set.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import tensorflow as tf

from hookbridge.loops.callable_session import CallableSession, CallableSessionHook

v1 = tf.compat.v1

_MAKERS = ("MonitoredSession", "MonitoredTrainingSession", "SingularMonitoredSession")


class CallableHost:
    """Runs scenarios on callable sessions.

    Attributes:
      calls: runs that went through a callable.
    """

    session_class: type = CallableSession

    def __init__(self) -> None:
        self.calls = 0

    @contextlib.contextmanager
    def graph(self) -> Iterator[Any]:
        """A fresh default graph."""
        with contextlib.ExitStack() as stack:
            for name in _MAKERS:
                maker = _with_hook(getattr(v1.train, name))
                stack.enter_context(mock.patch.object(v1.train, name, maker))
            found = CallableSession._callable
            counted = self._counted(found)
            stack.enter_context(
                mock.patch.object(CallableSession, "_callable", counted)
            )
            yield stack.enter_context(tf.Graph().as_default())

    def _counted(self, found: Callable[..., Any]) -> Callable[..., Any]:
        def counted(session: CallableSession, *args: Any) -> Any:
            call = found(session, *args) or found(session, *args)
            self.calls += call is not None
            return call

        return counted


def _with_hook(maker: Callable[..., Any]) -> Callable[..., Any]:
    def make(*args: Any, hooks: Any = None, **config: Any) -> Any:
        return maker(*args, hooks=[*(hooks or ()), CallableSessionHook()], **config)

    return make
