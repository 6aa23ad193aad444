"""A module that forwards to another one and replaces some of its names."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from typing import Any

from hookbridge.ground.imports.lazy_modules import LazyModule, made


class Facade(LazyModule):
    """A module with some of its names replaced.

    Every other attribute is read from, set on and deleted from the real module at the
    time of the access. So the package sees every change that somebody makes to
    TensorFlow.
    """

    def __init__(
        self, real: types.ModuleType, replaced: Mapping[str, Callable[[], Any]]
    ) -> None:
        super().__init__(real.__name__, real.__doc__)
        made(self).update(_facade_real=real, _facade_replaced=dict(replaced))

    def __getattr__(self, name: str) -> Any:
        replaced = self._facade_replaced.get(name)
        if replaced is not None:
            return replaced()
        return getattr(self._facade_real, name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self._facade_real, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._facade_real, name)

    def __dir__(self) -> list[str]:
        return sorted({*dir(self._facade_real), *self._facade_replaced})
