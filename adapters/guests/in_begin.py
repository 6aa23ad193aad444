"""A hook that is made when the graph of its run exists."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from hookbridge import errors
from hookbridge.adapters.guests import kinds
from hookbridge.ground.arguments import shown, with_arguments
from hookbridge.ground.protocols import Coordinator, RunContext, RunValues, Session


class InBegin(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
    """Makes a hook in `begin`, on the graph of the run, and passes on all events.

    Its attributes are those of the hook that it made last.
    """

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._made: Any = None
        self._is_new = False

    def make(self) -> Any:
        """Return the hook for the run that begins, made on the default graph."""
        hook = self._make()
        if not kinds.is_hook(hook):
            raise errors.NotAGuestError(
                f"`hb.in_begin({_name(self._make)})` has made {shown(hook)} of type "
                f"`{type(hook).__name__}`; expected one "
                "`tf.compat.v1.train.SessionRunHook`, new in each call."
            )
        self._made, self._is_new = hook, True
        return hook

    def begin(self) -> None:
        if not self._is_new:
            self.make()
        self._is_new = False
        self._made.begin()

    def after_create_session(self, session: Session, coord: Coordinator) -> None:
        self._made.after_create_session(session, coord)

    def before_run(self, run_context: RunContext) -> Any:
        return self._made.before_run(run_context)

    def after_run(self, run_context: RunContext, run_values: RunValues) -> None:
        self._made.after_run(run_context, run_values)

    def end(self, session: Session) -> None:
        self._made.end(session)

    def __getattr__(self, name: str) -> Any:
        hook = vars(self).get("_made")
        if hook is None:
            raise AttributeError(
                f"`{name}`: `hb.in_begin({_name(self._make)})` makes its hook when a "
                "run begins."
            )
        return getattr(hook, name)

    def __repr__(self) -> str:
        return f"hb.in_begin({_name(self._make)})"


def _name(make: object) -> str:
    return str(getattr(make, "__qualname__", make))


def in_begin(make: Callable[[], Any]) -> Any:
    """Return a hook that `make` makes once the graph of the run exists.

    For hooks whose constructor takes tensors or operations, in hosts that have another
    graph:

        def final_loss():
            graph = tf.compat.v1.get_default_graph()
            return tf.compat.v1.train.FinalOpsHook(graph.get_tensor_by_name("loss:0"))

        model.fit(x, y, callbacks=hb.as_callbacks(hb.in_begin(final_loss)))

    It works in every host, and makes a new hook in every run. The attributes of the
    made hook, such as `final_ops_values`, can be read from the returned one.

    Args:
      make: a function without arguments that returns a hook. It is called once in
        each run, in `begin`, on the thread of the loop. The run's graph is then the
        default graph, and `make` may add to it.

    Returns:
      A `SessionRunHook`.

    Raises:
      errors.InvalidArgumentError: `make` is not a function but, for example, a hook, or
        it takes arguments.
      errors.NotAGuestError: in `begin`, `make` has returned something else.
    """
    if not callable(make) or kinds.is_hook(make):
        raise errors.InvalidArgumentError(
            f"`in_begin` received {shown(make)} of type `{type(make).__name__}`; "
            "expected a function without arguments that returns a hook, such as "
            "`lambda: FinalOpsHook(op())`."
        )
    return InBegin(with_arguments("make", make))
