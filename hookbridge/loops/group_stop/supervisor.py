"""Processes with a `tf.compat.v1.train.Supervisor`, without hooks, end together."""

from __future__ import annotations

import atexit
import weakref
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from hookbridge.loops.group_stop.hook import GroupStopHook
from hookbridge.patching import InstanceMethods

TOKEN_SECS = 0.5


def follow_supervisors(make_hook: Callable[[], GroupStopHook | None]) -> None:
    """Makes each later `Supervisor` of this process call a `GroupStopHook`.

    `make_hook` is called in the graph of the `Supervisor`, before it is finalized.
    """
    kind = tf.compat.v1.train.Supervisor
    init, prepare, stop = kind.__init__, kind.prepare_or_wait_for_session, kind.stop
    hooks: weakref.WeakKeyDictionary[Any, GroupStopHook] = weakref.WeakKeyDictionary()

    def joined(self: Any, graph: Any = None, *args: Any, **named: Any) -> None:
        with (graph or tf.compat.v1.get_default_graph()).as_default():
            hook = make_hook()
            if hook is not None:
                hook.begin()
                hooks[self] = hook
        init(self, graph, *args, **named)

    def prepared(self: Any, *args: Any, **named: Any) -> Any:
        session = prepare(self, *args, **named)
        if hook := hooks.get(self):
            _begin(hook, session, self.coord)
        return session

    def stopped(self: Any, *args: Any, **named: Any) -> None:
        if hook := hooks.pop(self, None):
            hook.end(None)
            # Threads that wait for gradients end when the session is closed.
            named["ignore_live_threads"] = True
        stop(self, *args, **named)

    methods = {"prepare_or_wait_for_session": prepared, "stop": stopped}
    InstanceMethods(kind, {"__init__": joined, **methods}).install()


def _begin(hook: GroupStopHook, session: Any, coord: Any) -> None:
    hook.after_create_session(session, coord)
    group = hook.group
    let_one_through = group.step.let_one_through
    assert let_one_through is not None

    def stop() -> None:
        coord.request_stop()
        # A loop that does not ask `should_stop` may wait for several tokens.
        while not group.over.wait(TOKEN_SECS):
            let_one_through()

    group.step.release_by(stop)
    # A program need not call `stop`.
    atexit.register(hook.end, session)
