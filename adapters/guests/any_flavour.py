"""A base class whose objects are callbacks of every Keras flavour at once."""

from __future__ import annotations

import functools
from typing import Any

from hookbridge.ground import compat
from hookbridge.ground.protocols import KerasModel


@functools.cache
def _with_bases(cls: Any, bases: tuple[type, ...]) -> Any:
    return type(cls.__name__, (cls, *bases), {"__module__": cls.__module__})


class AnyFlavour:
    """Base class whose objects are instances of each imported Keras's `Callback`."""

    params: Any = None
    validation_data: Any = None  # Keras 2 has it on every callback
    model: Any = None

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        bases = tuple(k.callbacks.Callback for k in compat.keras_flavours())
        missing = tuple(b for b in bases if not issubclass(cls, b))
        kind: Any = cls
        return object.__new__(_with_bases(kind, missing) if missing else kind)

    def set_params(self, params: Any) -> None:
        self.params = params

    def set_model(self, model: KerasModel | None) -> None:
        self.model = model


class Inserted(AnyFlavour):
    """Base class of the callbacks that hookbridge puts into a list by itself."""

    _supports_tf_logs = True
    _chief_worker_only = False
