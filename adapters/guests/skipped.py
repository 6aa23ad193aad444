"""Replacements for guests whose role does not let them run in this process."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from hookbridge.adapters.guests import any_flavour, kinds, roles


class _Skipped(kinds.Wrapper):
    """Does not call its guest, and says so once.

    Attributes:
      role: where the guest runs, see `hookbridge.set_role`.
    """

    def __init__(self, role: roles.Role) -> None:
        self.role = role
        self._said = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({kinds.name_of(self.guest)}, role={self.role!r})"

    def _say_once(self) -> None:
        if not self._said:
            self._said = True
            roles.say_skipped(self.guest, self.role)


class SkippedHook(_Skipped, tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
    """Takes the place of a hook.

    Attributes:
      hook: the guest.
      role: where it runs.
    """

    def __init__(self, hook: Any, role: roles.Role) -> None:
        super().__init__(role)
        self.hook = hook

    def begin(self) -> None:
        self._say_once()


class SkippedCallback(_Skipped, any_flavour.AnyFlavour):
    """Takes the place of a callback in `fit`.

    Attributes:
      callback: the guest.
      role: where it runs.
    """

    # Keras 2: no method reads `logs`, so Keras need not convert them.
    _supports_tf_logs = True
    _chief_worker_only = False

    def __init__(self, callback: Any, role: roles.Role) -> None:
        super().__init__(role)
        self.callback = callback

    def set_model(self, model: Any) -> None:
        """Called by Keras before training."""
        super().set_model(model)
        self._say_once()


def hook_unless_skipped(hook: Any) -> Any:
    """The hook itself, or a `SkippedHook` if `set_role` excludes this process."""
    role = roles.given_role(hook)
    if role is None or roles.runs_here(role):
        return hook
    return SkippedHook(hook, role)


def callback_unless_skipped(callback: Any) -> Any:
    """The callback itself, or a `SkippedCallback` if `fit` must not call it here."""
    role = roles.role_in_fit(callback)
    return callback if roles.runs_here(role) else SkippedCallback(callback, role)
