"""A Keras 3 callback in a `fit` of Keras 2."""

from __future__ import annotations

from typing import ClassVar

import wrapt

from hookbridge import errors
from hookbridge.adapters.guests.copies import CopiedWrapper
from hookbridge.adapters.guests.guest_record import Guest
from hookbridge.ground.lifecycle import Kind
from hookbridge.ground.lifecycle.overrides import wants_batches
from hookbridge.ground.protocols import KerasModel


class ForeignCallback(CopiedWrapper, wrapt.ObjectProxy):  # type: ignore[misc,type-arg]
    """A proxy of the callback, with the methods that only Keras 2 calls."""

    acts_as: ClassVar[Kind] = "callback"

    def __init__(self, record: Guest) -> None:
        super().__init__(record.item)
        self._self_record = record

    def set_model(self, model: KerasModel | None) -> None:
        reason = self.record.keras_row.refused_in_keras2
        if reason is not None and hasattr(model, "_train_counter"):
            raise errors.RefusedError(
                f"`{self.record.name}` of Keras 3 cannot run in a `fit` of Keras 2: "
                f"{reason[0]}. Instead, {reason[1]}.",
                see="callback in a session",
            )
        self.guest.set_model(model)

    def _implements_train_batch_hooks(self) -> bool:
        return wants_batches(self.guest, "train")

    def _implements_test_batch_hooks(self) -> bool:
        return wants_batches(self.guest, "test")

    def _implements_predict_batch_hooks(self) -> bool:
        return wants_batches(self.guest, "predict")
