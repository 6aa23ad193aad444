"""A Keras callback as a SessionRunHook."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import tensorflow as tf

from hookbridge import errors
from hookbridge.adapters.guests import roles
from hookbridge.adapters.guests.guest_record import Guest, Wrapper, record_of_kind
from hookbridge.adapters.guests.kinds import CALLBACK_METHODS
from hookbridge.adapters.session_loop.group import CallbackGroup
from hookbridge.adapters.session_loop.shared.callback_run import CallbackRun
from hookbridge.adapters.session_loop.shared.options import HookOptions
from hookbridge.ground.lifecycle import Kind
from hookbridge.ground.protocols import (
    Coordinator,
    RunContext,
    RunValues,
    Session,
)


class CallbackToHook(
    Wrapper,
    tf.compat.v1.train.SessionRunHook,  # type: ignore[misc]
):
    """Runs an unmodified Keras callback in a session loop.

    For `MonitoredTrainingSession`, `Estimator.train`, `evaluate` and `predict`. The
    graph tells whether the session trains, evaluates or predicts.

    These hooks are usually made by `as_hooks`. The hooks of one call belong together:
    they share their fetches, and all their callbacks get an event, in order, before
    the next event, as in `Model.fit`.

    The callback's methods run on the thread of the loop, under eager execution, once
    for each event.

    | callback | hook |
    |---|---|
    | `set_model`, `set_params` | `begin` |
    | `on_train_begin` | `after_create_session`, the first time |
    | `on_epoch_begin`, `on_train_batch_begin` | `before_run` of a training step |
    | `on_train_batch_end`, `on_test_*`, `on_epoch_end` | `after_run` of that step |
    | `on_train_end` | `end`, which is not called after an error |

    Args:
      callback: a callback of any Keras flavour.
      group: shared by the hooks of one `as_hooks` call. It has the options already:
        `options` are not used then.
      **options: `steps_per_epoch` and the other options of `hookbridge.as_hooks`.

    Attributes:
      callback: the guest.
      called: the object whose methods are called. It is the guest, unless the guest
        is a `TensorBoard` of `tf.compat.v1.keras`: see `v1_tensorboard`.
      role: which processes of a cluster call the guest, see `hookbridge.set_role`.

    Raises:
      errors.NotAGuestError: `callback` is not a callback.
      errors.RefusedError: it cannot run in a session loop.
      errors.EpochsUndefinedError: it needs epochs and `steps_per_epoch` is missing.
      errors.InvalidArgumentError: an option has a bad value.
    """

    acts_as: ClassVar[Kind] = "hook"

    def __init__(
        self,
        callback: object,
        *,
        group: CallbackGroup | None = None,
        **options: Any,
    ) -> None:
        guest = record_of_kind("callback", callback)
        self._group = group or CallbackGroup(HookOptions(**options))
        self._self_record: Guest = self._group.add(guest)
        self.callback: Any = guest.item
        self.called: Any = self.record.called
        self._role = guest.role
        self._run: CallbackRun | None = None
        self._outer: CallbackRun | None = None
        # This hook's part of each run of the session, from `after_create_session` on.
        self._before: Callable[[Any], Any] = self._not_begun
        self._after: Callable[[Any, Any], Any] = self._not_begun

    def __repr__(self) -> str:
        return f"CallbackToHook({self.record.name})"

    def __getattr__(self, name: str) -> Any:
        """Name the converter if `fit` looks for a method of a callback."""
        if name in CALLBACK_METHODS:
            raise errors.WrongConverterError(
                f"`{self!r}` is a hook that `hb.as_hooks` made from a callback, and "
                f"`{name}` is a method of callbacks. Pass the callback itself to "
                "`hb.as_callbacks([...])`, and give the result to `fit`, `evaluate` "
                "or `predict`; hooks are for sessions and Estimators.",
            )
        raise AttributeError(f"`{type(self).__name__}` has no attribute `{name}`.")

    @property
    def last_step(self) -> int | None:
        """The global step at the end of the last epoch; None without `epochs`."""
        return self._group.config.last_step

    @property
    def asked_to_stop(self) -> bool:
        """Return whether a callback has set `stop_training` in the last evaluation.

        Any callback of the same `as_hooks` call counts: they share a model.
        """
        return self._run is not None and self._run.asked_to_stop

    @property
    def stop_reason(self) -> str | None:
        """Which callback of the same `as_hooks` call has asked for a stop, or why.

        None if none has, or if it is not known which one.
        """
        return None if self._run is None else self._run.stop_reason

    @property
    def role(self) -> roles.Role:
        """Which processes of a cluster call the callback.

        The role that `hookbridge.set_role` gave. Otherwise it is "chief" for a
        callback that writes files or monitors a `val_*` value, and "split" for all
        others. It may be set until the session begins.
        """
        return self._role

    @role.setter
    def role(self, role: roles.Role) -> None:
        self._role = roles.check_role(role)

    def _not_begun(self, *args: Any) -> Any:
        raise errors.LiveSessionError(
            f"{self!r} was used in a session that never called its `begin()` or "
            "`after_create_session()`. Give it to MonitoredTrainingSession or an "
            "Estimator as one of `hooks`.",
            see="guest without events",
        )

    def _running(self) -> CallbackRun:
        return self._run or self._not_begun()  # type: ignore[no-any-return]

    def begin(self) -> None:
        """Join the run of the graph that is being built."""
        # An evaluation may begin in mid-training with the same hooks, as in
        # `train_and_evaluate`; the training goes on after the evaluation's `end`.
        outer = self._run
        self._run = self._group.begin(self)
        self._outer = outer if outer is not None and not outer.finished else None

    def after_create_session(self, session: Session, coord: Coordinator) -> None:
        """Deliver `on_train_begin`, `on_test_begin` or `on_predict_begin`."""
        self._running().enter(self, session, coord)
        self._before, self._after = self._running().before_and_after_run_of(self)

    def before_run(self, run_context: RunContext) -> Any:
        """Deliver the events at the start of a step."""
        return self._before(run_context)

    def after_run(self, run_context: RunContext, run_values: RunValues) -> None:
        """Deliver the end events of a step."""
        self._after(run_context, run_values)

    def end(self, session: Session) -> None:
        """Deliver the end of the run."""
        self._running().leave(self, session)
        if self._outer is not None:
            self._run, self._outer = self._outer, None
            self._before, self._after = self._run.before_and_after_run_of(self)
