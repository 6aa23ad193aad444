"""`self.validation_data` of a callback, which Keras set until 2.3."""

from __future__ import annotations

from typing import Any

import numpy as np

from hookbridge.old_programs.run.restored.fit_calls import change_fit


def restore() -> None:
    """Let `fit` of Keras 2 give its callbacks the data of the validation.

    The methods stay changed until the process ends.
    """
    change_fit(_with_data, "", "_v1")


def _with_data(
    model: object, arguments: dict[str, Any], callbacks: list[Any]
) -> list[Any]:
    """Set the attribute of each callback; return the callbacks."""
    data = _validation_data(arguments)
    if data is not None:
        for callback in callbacks:
            callback.validation_data = data
    return callbacks


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
    arrays = [*_as_list(inputs), *_as_list(targets)]
    if not all(isinstance(array, np.ndarray) for array in arrays):
        return None
    ones = [np.ones(len(array), "float32") for array in _as_list(targets)]
    return [*arrays, *(_as_list(weights) or ones)]


def _last(data: Any, share: float) -> Any:
    """Return the last samples of an array, or of each of several."""
    if isinstance(data, list | tuple):
        return [_last(array, share) for array in data]
    return None if data is None else data[int(len(data) * (1.0 - share)) :]


def _as_list(data: object) -> list[Any]:
    if data is None:
        return []
    return list(data) if isinstance(data, list | tuple) else [data]
