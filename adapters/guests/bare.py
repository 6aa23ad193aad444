"""A callback of no Keras, such as a class with the methods alone, in `fit`."""

from __future__ import annotations

from typing import ClassVar

from hookbridge.adapters.guests import kinds
from hookbridge.adapters.guests.any_flavour import AnyFlavour
from hookbridge.adapters.guests.copies import CopiedWrapper
from hookbridge.adapters.guests.guest_record import Guest
from hookbridge.ground.lifecycle import CALLBACK_EVENTS, Kind
from hookbridge.ground.lifecycle.overrides import BATCH_EVENTS, SETTERS
from hookbridge.ground.protocols import KerasModel

_METHODS = {*(event.name for event in CALLBACK_EVENTS), *BATCH_EVENTS["train"]}


def is_bare(guest: Guest) -> bool:
    """Return whether a guest is a callback whose class derives from no Keras."""
    return (
        guest.kind == "callback"
        and not isinstance(guest.item, AnyFlavour)
        and kinds.keras_behind(guest.item) is None
    )


class BareCallback(CopiedWrapper, AnyFlavour):
    """Has all methods that a Keras calls: those of the guest, and else Keras's own."""

    acts_as: ClassVar[Kind] = "callback"
    _supports_tf_logs = False
    _chief_worker_only = None

    def __init__(self, record: Guest) -> None:
        self._self_record: Guest = record
        for name in _METHODS.difference(SETTERS):
            method = getattr(record.item, name, None)
            if callable(method):
                # Keras's own `on_train_batch_end` calls the older `on_batch_end`.
                vars(self)[name] = method

    def set_params(self, params: object) -> None:
        """Take what Keras sets; the guest gets them too."""
        super().set_params(params)
        self.guest.set_params(params)

    def set_model(self, model: KerasModel | None) -> None:
        """Take what Keras sets; the guest gets it too."""
        super().set_model(model)
        self.guest.set_model(model)
