"""`self.validation_data` of a callback, which Keras set until 2.3."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from hookbridge.ground import compat
from hookbridge.ground.patching import InstanceMethods


def bring_back() -> None:
    """Let `fit` of Keras 2 give its callbacks the data of the validation.

    The methods stay changed until the process ends.
    """
    if compat.tf_version() > compat.LAST_WITH_KERAS2:
        keys = ("tf_keras_training", "tf_keras_training_v1")
    else:
        keys = ("keras_training", "keras_training_v1")
    for key in keys:
        owner = compat.private(key).Model
        InstanceMethods(owner, {"fit": _telling(owner.fit)}).install()


def _telling(plain: Callable[..., Any]) -> Callable[..., Any]:
    """Return the method, which sets the attribute of each callback first."""
    signature = inspect.signature(plain)

    @functools.wraps(plain)
    def fit(self: Any, *args: Any, **named: Any) -> Any:
        arguments = signature.bind(self, *args, **named).arguments
        callbacks = arguments.get("callbacks")
        data = _validation_data(arguments)
        if data is not None and isinstance(callbacks, list | tuple):
            for callback in callbacks:
                callback.validation_data = data
        return plain(self, *args, **named)

    return fit


def _validation_data(arguments: dict[str, Any]) -> list[Any] | None:
    """Return the inputs, targets and weights; None for what Keras did not set it for.

    Args:
      arguments: the arguments of `fit` by their names. Arrays have the samples in their
        first axis.
    """
    data = arguments.get("validation_data")
    if isinstance(data, list | tuple) and len(data) in (2, 3):
        inputs, targets, weights = (*data, None)[:3]
    elif share := arguments.get("validation_split"):
        inputs, targets, weights = (
            _last(arguments.get(name), share) for name in ("x", "y", "sample_weight")
        )
    else:
        return None
    arrays = [*_listed(inputs), *_listed(targets)]
    if not all(isinstance(array, np.ndarray) for array in arrays):
        return None
    ones = [np.ones(len(array), "float32") for array in _listed(targets)]
    return [*arrays, *(_listed(weights) or ones)]


def _last(data: Any, share: float) -> Any:
    """Return the last samples of an array, or of each of several."""
    if isinstance(data, list | tuple):
        return [_last(array, share) for array in data]
    return None if data is None else data[int(len(data) * (1.0 - share)) :]


def _listed(data: object) -> list[Any]:
    if data is None:
        return []
    return list(data) if isinstance(data, list | tuple) else [data]
