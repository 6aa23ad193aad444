"""A Keras 3 callback in a `fit` of Keras 2."""

from __future__ import annotations

from typing import Any

import wrapt

from hookbridge import compat, errors
from hookbridge.adapters.guests import kinds
from hookbridge.lifecycle.overrides import wants_batches

# Class name -> (reason, way out).
_REFUSED = {
    "SwapEMAWeights": (
        "it swaps the moving averages of a Keras 3 optimizer",
        "give the Keras 2 optimizer `use_ema=True`, with which it does so itself",
    ),
}


class ForeignCallback(kinds.Wrapper, wrapt.ObjectProxy):  # type: ignore[misc,type-arg]
    """A proxy of the callback, with the methods that only Keras 2 calls."""

    @property
    def guest(self) -> Any:
        """The callback."""
        return self.__wrapped__

    def set_model(self, model: Any) -> None:
        """Called by Keras before training.

        Raises:
          errors.RefusedError: the callback needs a Keras 3 model; this is another.
        """
        reason = _REFUSED.get(kinds.stock_name(self.guest))
        if reason is not None and hasattr(model, "_train_counter"):
            raise errors.RefusedError(
                f"`{kinds.name_of(self.guest)}` of Keras 3 cannot run in a `fit` of "
                f"Keras 2: {reason[0]}. Instead, {reason[1]}.",
                see="callback in a session",
            )
        self.guest.set_model(model)

    def _implements_train_batch_hooks(self) -> bool:
        return wants_batches(self.guest, "train")

    def _implements_test_batch_hooks(self) -> bool:
        return wants_batches(self.guest, "test")

    def _implements_predict_batch_hooks(self) -> bool:
        return wants_batches(self.guest, "predict")


def is_foreign(callback: Any) -> bool:
    """Whether a `fit` of a Keras in this process cannot call the callback as it is."""
    return kinds.flavour_of(callback) == "keras3" and any(
        not compat.is_keras3(k) and not isinstance(callback, k.callbacks.Callback)
        for k in compat.keras_flavours()
    )


def for_every_keras(callback: Any) -> Any:
    """The callback, wrapped if some Keras in this process could not call it."""
    return ForeignCallback(callback) if is_foreign(callback) else callback
