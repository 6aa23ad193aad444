"""What stands for a callback in a `fit` where its role lets it not run."""

from __future__ import annotations

from typing import Any

from hookbridge.adapters.guests import any_flavour, roles
from hookbridge.adapters.guests import kinds as guests


class SkippedCallback(any_flavour.AnyFlavour):
    """Calls nothing of its callback; says so once.

    Args:
      callback: a callback of any flavour.
      role: where it runs, see `hookbridge.set_role`.

    Attributes:
      callback: the guest.
      role: where it runs.
    """

    # Keras 2: no method reads `logs`, so nothing need be converted.
    _supports_tf_logs = True
    _chief_worker_only = False

    def __init__(self, callback: Any, role: roles.Role) -> None:
        self.callback = callback
        self.role = role
        self.validation_data = None
        self.params: Any = None
        self._model: Any = None
        self._said = False

    def __repr__(self) -> str:
        name = guests.name_of(self.callback)
        return f"SkippedCallback({name}, role={self.role!r})"

    def set_params(self, params: Any) -> None:
        """Called by Keras before training."""
        self.params = params

    def set_model(self, model: Any) -> None:
        """Called by Keras before training; logs that nothing more follows."""
        self._model = model
        if not self._said:
            self._said = True
            roles.say_skipped(self.callback, self.role)


def unless_skipped(callback: Any) -> Any:
    """The callback itself where `fit` calls it, else its stand-in."""
    role = roles.role_in_fit(callback)
    return callback if roles.runs_here(role) else SkippedCallback(callback, role)
