"""Makes any guest record what it receives, while it does its own work."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from hookbridge.adapters.guests import kinds
from hookbridge.ground import lifecycle
from hookbridge.ground.patching import Patches
from hookbridge.testing.event_log import EventLog, number_and_logs

_SPY = "_hookbridge_spied"


def spy(guest: object, log: EventLog, name: str | None = None) -> Any:
    """Make a guest record what it receives, without changing what it does.

    The methods of the instance are wrapped, not the methods of its class. Only events
    that the guest overrides are recorded (see `lifecycle.overridden`), so no host takes
    it for a guest with more batch methods than it has. Spying again moves the guest to
    the new log and name.

    Args:
      guest: a hook or a callback.
      log: where events go.
      name: the guest's name in the log; its class by default.

    Returns:
      `guest` itself.

    Raises:
      errors.NotAGuestError: `guest` is neither a hook nor a callback.
    """
    (guest,) = kinds.flatten([guest])
    unspy(guest)
    kind: lifecycle.Kind = "hook" if kinds.is_hook(guest) else "callback"
    name = name or kinds.name_of(guest)
    methods = Patches(
        guest,
        {
            event: _recording(getattr(guest, event), event, kind, log, name)
            for event in lifecycle.overridden(guest, kind)
        },
    )
    methods.install()
    vars(guest)[_SPY] = methods
    return guest


def unspy(guest: object) -> Any:
    """Undo `spy`.

    Args:
      guest: a hook or callback; one that is not spied on is left as it is.

    Returns:
      `guest` itself.
    """
    methods = vars(guest).pop(_SPY, None)
    if methods is not None:
        methods.remove()
    return guest


def _recording(
    method: Callable[..., Any],
    event: str,
    kind: lifecycle.Kind,
    log: EventLog,
    name: str,
) -> Callable[..., Any]:
    """Return the method of a guest with a record of each call before it runs."""

    @functools.wraps(method)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        number, logs = (
            number_and_logs(event, args, kwargs) if kind == "callback" else (None, None)
        )
        log.add(name, event, number, logs=logs)
        return method(*args, **kwargs)

    return wrapper
