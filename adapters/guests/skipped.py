"""Replacements for guests whose role does not let them run in this process."""

from __future__ import annotations

from typing import Any, ClassVar

import tensorflow as tf

from hookbridge.adapters.guests import any_flavour, roles
from hookbridge.adapters.guests.copies import CopiedWrapper
from hookbridge.adapters.guests.guest_record import Guest
from hookbridge.ground.lifecycle import Kind
from hookbridge.ground.protocols import KerasModel


class _Skipped(CopiedWrapper):
    """Does not call its guest, and says so once."""

    def __init__(self, record: Guest, role: roles.Role) -> None:
        self._self_record = record
        self.role = role
        self._said = False

    def copy_options(self) -> dict[str, Any]:
        """Return the options with which a copy is made."""
        return {"role": self.role}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.record.name}, role={self.role!r})"

    def _say_once(self) -> None:
        if not self._said:
            self._said = True
            roles.say_skipped(self.record.name, self.role)


class SkippedHook(_Skipped, tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
    """Takes the place of a hook in a session."""

    acts_as: ClassVar[Kind] = "hook"

    def begin(self) -> None:
        self._say_once()


class SkippedCallback(_Skipped, any_flavour.AnyFlavour):
    """Takes the place of a hook or callback in `fit`."""

    acts_as: ClassVar[Kind] = "callback"
    # Keras 2: no method reads `logs`, so Keras need not convert them.
    _supports_tf_logs = True
    _chief_worker_only = False

    def set_model(self, model: KerasModel | None) -> None:
        super().set_model(model)
        self._say_once()
