"""All tasks of a program's cluster end together, as soon as one of them ends.

`hookbridge cluster` asks for it: in TensorFlow a task waits for ever for the gradients
of others that have ended.
"""

from __future__ import annotations

import atexit
import weakref
from collections.abc import Callable
from typing import Any, TypeAlias

import tensorflow as tf

from hookbridge import errors
from hookbridge.ground import patching
from hookbridge.ground.processes.tf_config import ClusterConfig
from hookbridge.ground.protocols import Coordinator, Graph, Session
from hookbridge.jobs.loops.group_stop.hook import GroupHook, GroupStopHook
from hookbridge.jobs.loops.tasks.task_checks import trainers
from hookbridge.old_programs.run.joining.sessions import change_hooks, trains

TOKEN_SECS = 0.5
_Method: TypeAlias = Callable[..., Any]


def join() -> None:
    """Add a `GroupStopHook` to each session that trains in a cluster.

    Call it before guests from outside join: the hook has to be the last of all.
    """
    change_hooks(lambda hooks: hooks + _group_stop_hooks(hooks))
    _join_supervisors()


def _join_supervisors() -> None:
    """Make each later `Supervisor`, which knows no hooks, call the hook."""
    hooks: weakref.WeakKeyDictionary[Any, GroupStopHook] = weakref.WeakKeyDictionary()

    def joined(
        init: _Method,
        self: Any,
        /,
        graph: Graph | None = None,
        *args: Any,
        **named: Any,
    ) -> None:
        # The graph is finalized in `init`.
        with (graph or tf.compat.v1.get_default_graph()).as_default():
            for hook in _group_stop_hooks([]):
                hook.begin()
                hooks[self] = hook
        init(self, graph, *args, **named)

    def prepared(prepare: _Method, self: Any, /, *args: Any, **named: Any) -> Any:
        session = prepare(self, *args, **named)
        if hook := hooks.get(self):
            _begin(hook, session, self.coord)
        return session

    def stopped(stop: _Method, self: Any, /, *args: Any, **named: Any) -> None:
        if hook := hooks.pop(self, None):
            hook.end(None)
            # Threads that wait for gradients end when the session is closed.
            named["ignore_live_threads"] = True
        stop(self, *args, **named)

    patching.wrap(
        tf.compat.v1.train.Supervisor,
        __init__=joined,
        prepare_or_wait_for_session=prepared,
        stop=stopped,
    )


def _begin(hook: GroupStopHook, session: Session, coord: Coordinator) -> None:
    """Join the stop of the job, and let a stop end a loop that waits for tokens."""
    hook.after_create_session(session, coord)
    group = hook.group
    let_one_through = group.watch.let_one_through
    assert let_one_through is not None

    def stop() -> None:
        coord.request_stop()
        # A loop that does not ask `should_stop` may wait for several tokens.
        while not group.helpers_end.wait(TOKEN_SECS):
            let_one_through()

    group.watch.release_by(stop)
    # A program need not call `stop`.
    atexit.register(hook.end, session)


def _group_stop_hooks(hooks: list[Any]) -> list[GroupStopHook]:
    """Return the hook; none if there is one, or nobody to end together with."""
    try:
        config = ClusterConfig.from_environment()
    except errors.InvalidArgumentError:  # TF_CONFIG means something else here
        return []
    tasks = trainers(config)
    if len(tasks) < 2 or "ps" not in config.cluster:
        return []
    if (config.task_type, config.task_index) not in tasks:
        return []
    has_one = any(isinstance(hook, GroupHook) for hook in hooks)
    if has_one or not trains(tf.compat.v1.get_default_graph()):
        return []
    return [GroupStopHook(config)]
