"""What `MonitoredSession` is given to drive hooks in a native loop."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from hookbridge import errors
from hookbridge.adapters.guests.in_begin import InBegin
from hookbridge.adapters.guests.kinds import name_of
from hookbridge.adapters.hooked_loop import refusals
from hookbridge.adapters.live_session.feeds import mapper_of
from hookbridge.ground import compat
from hookbridge.ground.arguments import shown
from hookbridge.ground.protocols import AnyFunction, Hook, RunContext, Session
from hookbridge.ground.step_errors import LOST_TASK


class ClusterFailure(Exception):
    """Carries an error of the cluster past `MonitoredSession`'s recovery.

    `MonitoredSession` would make a new session, but a strategy without one of its
    processes cannot be made again.
    """

    def __init__(self, error: BaseException) -> None:
        super().__init__(str(error))
        self.error = error


def shield(
    function: AnyFunction, note_lost: Callable[[], None] = lambda: None
) -> Callable[..., Any]:
    """Return a function whose errors of the cluster pass `MonitoredSession`.

    Args:
      function: what is called.
      note_lost: called when a task of the cluster is lost.
    """

    @functools.wraps(function)
    def call(*args: object) -> Any:
        try:
            return function(*args)
        except LOST_TASK as e:
            note_lost()
            raise ClusterFailure(e) from e

    return call


class HookWithoutEnd(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
    """A hook without its `end`, which its callback calls."""

    def __init__(self, hook: Hook) -> None:
        self._hook = hook
        self.after_create_session: Callable[[Session, Any], None] = (
            hook.after_create_session
        )
        self._before_run = hook.before_run
        self.after_run: Callable[[Any, Any], None] = hook.after_run
        self.request: Any = None  # what it wanted of the last step

    @property
    def name(self) -> str:
        """The class of the hook."""
        return name_of(self._hook)

    def before_run(self, run_context: RunContext) -> Any:
        self.request, request = None, self._before_run(run_context)
        self._check(request)
        self.request = request
        return request

    def _check(self, request: object) -> None:
        """Refuse what is not a `SessionRunArgs`, in the words of a TF session."""
        kind = type(request).__name__
        if request is not None and not hasattr(request, "fetches"):
            raise errors.RunArgumentsError(
                f"'{kind}' object has no attribute 'fetches': `{self.name}` returned "
                f"{shown(request)} from `before_run`; expected "
                "`tf.compat.v1.train.SessionRunArgs(fetches, feed_dict)`, or None."
            )
        feeds = getattr(request, "feed_dict", None)
        if feeds and not isinstance(feeds, Mapping):
            raise errors.RunArgumentsError(
                f"`{self.name}` returned feed_dict={shown(feeds)} from `before_run`; "
                "expected a dict {tensor or its name: value}."
            )

    def begin(self) -> None:
        """Begin the hook and check that its tensors are of the run's graph."""
        hook, graph = self._hook, tf.compat.v1.get_default_graph()
        if isinstance(hook, InBegin):
            refusals.check_hook(hook.make(), graph)
        try:
            hook.begin()
        except Exception:
            # TensorFlow's own message about another graph names no way out.
            refusals.check_graph(hook, graph)
            raise
        refusals.check_graph(hook, graph)
        final_ops = getattr(hook, "_final_ops", None)
        if final_ops is not None:
            # What a `FinalOpsHook` fetches in `end` is looked up now, so that steps
            # return it. A name that the graph lacks fails in `end`, as in a session.
            with contextlib.suppress(
                errors.UnknownTensorError, errors.RunArgumentsError
            ):
                mapper_of(graph, final_ops)


def error_with_hook(
    error: errors.HookBridgeError, members: Sequence[Any], session: Session
) -> errors.HookBridgeError:
    """Return the error of bad fetches or feeds, with the hook that wanted them."""
    takes = getattr(session, "takes", None)
    for member in members:
        if isinstance(member, HookWithoutEnd) and takes and not takes(member.request):
            return type(error)(f"{error} `{member.name}` requested it in `before_run`.")
    return error


def check_clash(error: RuntimeError, members: Sequence[Any]) -> None:
    """Name the hooks that feed, where TensorFlow says that two feed one tensor."""
    if not str(error).startswith("Same tensor is fed by two hooks"):
        return
    feeding = [
        f"`{member.name}`"
        for member in members
        if getattr(getattr(member, "request", None), "feed_dict", None)
    ]
    raise errors.LiveSessionError(
        f"{error}. Hooks that feed: {', '.join(feeding)}; expected one hook for each "
        "tensor. Leave one of them out, or let one hook feed what both want.",
        see="live session",
    ) from error


class LaterStop(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
    """The last hook: while `is_early()`, a stop of the hooks calls `ask` instead."""

    def __init__(self, is_early: Callable[[], Any], ask: Callable[[], None]) -> None:
        self._is_early = is_early
        self._ask = ask

    def after_run(
        self,
        run_context: tf.compat.v1.train.SessionRunContext,
        run_values: tf.compat.v1.train.SessionRunValues,
    ) -> None:
        if run_context.stop_requested and self._is_early():
            compat.withdraw_stop(run_context)
            self._ask()


def scaffold_of(hooks: Sequence[Any]) -> Any:
    """Return the scaffold of the first hook that has one, or None."""
    items = (getattr(hook, "_scaffold", None) for hook in hooks)
    return next((s for s in items if isinstance(s, tf.compat.v1.train.Scaffold)), None)


def not_end_of_data_error(error: BaseException) -> errors.LiveSessionError:
    """Return the error to raise in place of a hook's error that Keras would swallow."""
    result = errors.LiveSessionError(
        f"A hook raised {type(error).__name__}: {error}. In a MonitoredSession it "
        "escapes the loop, but Keras would take it for the end of the data, so it "
        "comes as this error, with the hook's own as `hook_error`. Raise another "
        "type, or ask for a clean stop with `run_context.request_stop()`.",
        see="live session",
    )
    result.hook_error = error
    return result
