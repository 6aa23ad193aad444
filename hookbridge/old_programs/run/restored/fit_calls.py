"""What is changed in each call of `fit` of Keras 2."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from hookbridge.ground import compat, patching

# Takes the model, the arguments by their names, and the callbacks among them; returns
# the callbacks that `fit` gets.
Change = Callable[[Any, dict[str, Any], list[Any]], list[Any]]
# Ending -> the private module of the model: that of Keras 2.15, and that of tf_keras.
_MODULES = {
    "": ("keras_training", "tf_keras_training"),
    "_v1": ("keras_training_v1", "tf_keras_training_v1"),
}


def change_fit(change: Change, *endings: str) -> None:
    """Let `fit` change its callbacks, until the process ends.

    Args:
      change: what is done where `fit` is called with a list of callbacks.
      endings: "" for the model of Keras 2, "_v1" for that of TensorFlow 1.
    """
    is_apart = compat.tf_version() > compat.LAST_WITH_KERAS2
    for ending in endings:
        owner = compat.private(_MODULES[ending][is_apart]).Model
        patching.wrap(owner, fit=functools.partial(_call_with_change, change))


def _call_with_change(
    change: Change, fit: Callable[..., Any], self: Any, /, *args: Any, **named: Any
) -> Any:
    """Call `fit` with `change` for lists of callbacks."""
    bound = inspect.signature(fit).bind(self, *args, **named)
    callbacks = bound.arguments.get("callbacks")
    if isinstance(callbacks, list | tuple):
        callbacks = change(self, bound.arguments, list(callbacks))
        bound.arguments["callbacks"] = callbacks
    return fit(*bound.args, **bound.kwargs)
