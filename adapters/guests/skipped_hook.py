"""What stands for a hook in a process where its role lets it not run."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from hookbridge.adapters.guests import kinds as guests
from hookbridge.adapters.guests import roles


class SkippedHook(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
    """Calls nothing of its hook; says so once.

    Attributes:
      hook: the guest.
      role: where it runs.
    """

    def __init__(self, hook: Any, role: roles.Role) -> None:
        """Stands in for a hook.

        Args:
          hook: any `SessionRunHook`.
          role: see `hookbridge.set_role`.
        """
        self.hook = hook
        self.role = role
        self._said = False

    def __repr__(self) -> str:
        return f"SkippedHook({guests.name_of(self.hook)}, role={self.role!r})"

    def begin(self) -> None:
        if not self._said:
            self._said = True
            roles.say_skipped(self.hook, self.role)


def unless_skipped(hook: Any) -> Any:
    """The hook itself where it runs, as `set_role` said, else its stand-in."""
    role = roles.given_role(hook)
    if role is None or roles.runs_here(role):
        return hook
    return SkippedHook(hook, role)
