"""Copies of wrappers: keras-tuner copies callbacks, Ray and joblib pickle them."""

from __future__ import annotations

import copy
import sys
from collections.abc import Mapping
from typing import Any

from hookbridge.adapters.guests.guest_record import Wrapper, record_of


class CopiedWrapper(Wrapper):
    """A wrapper whose copy is a new wrapper around a copy of its guest.

    The class of a wrapper may be made for the Keras flavours of this process, and what
    it holds of a run belongs to that run: neither is copied.
    """

    def copy_options(self) -> dict[str, Any]:
        """Return the keyword arguments of its class, besides the guest's record."""
        return {}

    def __reduce_ex__(self, protocol: object) -> Any:
        return _rebuilt, (_own_class(self), self.guest, self.copy_options())

    def __copy__(self) -> Any:
        return _rebuilt(_own_class(self), self.guest, self.copy_options())

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return _rebuilt(
            _own_class(self), copy.deepcopy(self.guest, memo), self.copy_options()
        )


def _own_class(wrapper: object) -> Any:
    """Return the class of a wrapper that its module has, by which a pickle finds it."""
    return next(
        cls
        for cls in type(wrapper).__mro__
        if getattr(sys.modules[cls.__module__], cls.__qualname__, None) is cls
    )


def _rebuilt(cls: Any, guest: object, options: Mapping[str, Any]) -> Any:
    return cls(record_of(guest), **options)
