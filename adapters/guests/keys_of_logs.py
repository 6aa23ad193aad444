"""A KeyError of a callback names the keys that `logs` had."""

from __future__ import annotations

import sys
from collections.abc import Mapping


def add_keys(error: KeyError, event: str, logs: object) -> None:
    """Add the keys of `logs` to the error of a callback, from Python 3.11 on.

    Args:
      error: what the callback has raised.
      event: the event that was delivered.
      logs: the last argument of the event.
    """
    if sys.version_info >= (3, 11) and isinstance(logs, Mapping):
        key = error.args[0] if error.args else None
        if isinstance(key, str) and key not in logs:
            keys = ", ".join(map(repr, logs)) or "no keys"
            error.add_note(f"hookbridge: `logs` of `{event}` had {keys}.")
