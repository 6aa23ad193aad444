"""All tasks of a program's cluster end together, as soon as one of them ends.

`hookbridge cluster` asks for it: in TensorFlow a task waits for ever for the gradients
of others that have ended.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from hookbridge import errors, patching
from hookbridge.cluster import ClusterConfig
from hookbridge.loops.group_stop.hook import GroupStopHook
from hookbridge.loops.group_stop.supervisor import follow_supervisors
from hookbridge.loops.tasks.jobs import trainers
from hookbridge.run.joining import servers
from hookbridge.run.joining.sessions import kind_of_sessions, trains


def join() -> None:
    """Adds a `GroupStopHook` to each session that trains in a cluster.

    Call it before guests from outside join: the hook has to be the last of all.
    """
    servers.follow()
    kind = kind_of_sessions()
    init = kind.__init__

    def joined(
        self: Any, session_creator: Any, hooks: Any, *args: Any, **kw: Any
    ) -> None:
        hooks = list(hooks or ())
        init(self, session_creator, hooks + _more(hooks), *args, **kw)

    patching.InstanceMethods(kind, {"__init__": joined}).install()
    follow_supervisors(lambda: next(iter(_more([])), None))


def _more(hooks: list[Any]) -> list[Any]:
    """The hook; none if there is one, or nobody to end together with."""
    try:
        config = ClusterConfig.from_environment()
    except errors.InvalidArgumentError:  # TF_CONFIG means something else here
        return []
    tasks = trainers(config)
    if len(tasks) < 2 or "ps" not in config.cluster:
        return []
    if (config.task_type, config.task_index) not in tasks:
        return []
    has_one = any(isinstance(hook, GroupStopHook) for hook in hooks)
    if has_one or not trains(tf.compat.v1.get_default_graph()):
        return []
    return [GroupStopHook(config)]
