"""Who a callback is: what tells it apart from others of its class, in any process."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from hookbridge import errors
from hookbridge.adapters.state import attributes
from hookbridge.ground.memory import Fact
from hookbridge.ground.protocols import Callback

# Strings that are stored and reported as they are. Of others, which may be secrets, a
# digest is stored.
_OPEN_STRINGS = frozenset({"monitor", "mode", "monitor_op"})
# Texts without which the numbers of a state mean something else.
DECISIVE = _OPEN_STRINGS | {"filepath"}
_MOST_ITEMS = 100

_SEEN = Fact[Mapping[str, Any]]("guest", "values when it was first seen")


class Identity(NamedTuple):
    """What tells a callback apart from others."""

    kind: str  # the name of its class
    key: str | None  # its `state_key`, which takes the place of `values`
    # The values that it was constructed with, as JSON. A list holds the digest of
    # something that is neither a number nor a string.
    values: Mapping[str, Any]

    def __str__(self) -> str:
        """Return the name in messages."""
        if self.key is not None:
            shown = {"state_key": self.key}
        else:
            items = self.values.items()
            shown = {k: v for k, v in items if k in ("monitor", "mode") and v != "auto"}
        options = ", ".join(f"{k}={v!r}" for k, v in shown.items())
        return f"`{self.kind}({options})`" if options else f"`{self.kind}`"

    def strings(self) -> dict[str, Any]:
        """Return the values that stay the same as long as it is the same callback."""
        # A number, such as `patience`, may be tuned: the callback remains who it is.
        return {k: v for k, v in self.values.items() if isinstance(v, str)}


def of(callback: Callback) -> Identity:
    """Return the identity of a callback, from the first time that it was seen.

    Raises:
      errors.InvalidArgumentError: its `state_key` is not text.
    """
    key = getattr(callback, "state_key", None)
    if key is not None and not isinstance(key, str):
        raise errors.InvalidArgumentError(
            f"`{type(callback).__name__}.state_key` is {key!r}; expected a string that "
            "no other callback of the class has, the same in every run of the job."
        )
    values = _SEEN.get_or_put(callback, lambda: _values(callback))
    return Identity(type(callback).__name__, key, values)


def _values(callback: Callback) -> dict[str, Any]:
    """Return what the constructor has set and two processes can compare."""
    kind: Any = type(callback)
    set_later, parameters = attributes.assigned(kind), attributes.parameters(kind)
    values = {}
    for name, value in list(getattr(callback, "__dict__", {}).items()):
        is_given = name.lstrip("_") in parameters
        if name in attributes.NEVER or (name in set_later and not is_given):
            continue
        plain = _comparable(name, value, is_given=is_given)
        if plain is not None:
            values[name] = plain
    return values


def _comparable(name: str, value: object, *, is_given: bool) -> Any:
    """Return an argument of a callback as a later run can compare it, or None."""
    if isinstance(value, (bool, int, float, np.number)):
        return _comparable_number(value)
    if callable(value) and hasattr(value, "__name__"):
        text = getattr(value, "__qualname__", value.__name__)
        return value.__name__ if name in _OPEN_STRINGS else [_digest(text)]
    if isinstance(value, (str, os.PathLike)):
        return _comparable_text(name, value, is_given=is_given)
    if isinstance(value, (list, tuple)) and len(value) <= _MOST_ITEMS:
        items = [_comparable("", item, is_given=True) for item in value]
        return None if None in items else [_digest(json.dumps(items))]
    return None


def _comparable_number(value: object) -> Any:
    """Return a number as a later run can compare it; None for NaN or a complex one."""
    number = value.item() if isinstance(value, np.number) else value
    return number if isinstance(number, (int, float)) and number == number else None


def _comparable_text(name: str, value: Any, *, is_given: bool) -> Any:
    """Return a string or path as a later run can compare it."""
    if name in _OPEN_STRINGS:
        return str(value)
    digest = _digest(str(os.fspath(value)))
    # A text that the constructor found out itself, such as the name of the host or the
    # time, may differ each time.
    return digest if is_given else [digest]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
