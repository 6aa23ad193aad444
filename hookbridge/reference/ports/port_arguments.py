"""The arguments of a port's recording: a loss, arrays and settings of any framework."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from hookbridge import errors
from hookbridge.ground.arguments import shown, string_mapping


def shape_text(shape: tuple[int, ...] | None) -> str:
    """Return a shape in words."""
    return "missing" if shape is None else f"of shape {list(shape)}"


def mean(name: str, value: Any) -> float:
    """Return a loss or a metric, whole or by example, as one number."""
    try:
        average = np.mean(value) if np.size(value) else None
        # NumPy would drop the imaginary part.
        if isinstance(average, (complex, np.complexfloating)):
            raise TypeError("it is complex")
        return float(average)  # type: ignore[arg-type]  # a TypeError for None
    except (TypeError, ValueError) as e:
        raise errors.InvalidArgumentError(
            f"Received {name}={shown(value)}; expected a real number, or a list or an "
            "array of them that is not empty."
        ) from e


def settings_of(optimizer: object) -> list[dict[str, Any]]:
    """Return the optimizer as `recording.json` has it."""
    settings = string_mapping("optimizer", optimizer)
    for name, value in settings.items():
        if isinstance(value, np.ndarray):
            settings[name] = value = value.tolist()
        if not _is_plain(value):
            raise errors.InvalidArgumentError(
                f"Received `optimizer[{name!r}]={shown(value)}`; expected a number, a "
                'string or a list of them, such as {"class": "Adam", "epsilon": 1e-8}.'
            )
    return [settings] if settings else []


def arrays_from(name: str, value: Any) -> dict[str, Any]:
    """Return the arrays of a dict; raise for what is none of numbers."""
    arrays = {k: np.array(v) for k, v in string_mapping(name, value).items()}
    for key, array in arrays.items():
        if array.dtype.kind in "OSUMm":  # objects, strings, times
            raise errors.InvalidArgumentError(
                f"Received {name}[{key!r}] of type `{type(value[key]).__name__}`; "
                "expected a number, a list of numbers or an array of them."
            )
    return arrays


def _is_plain(value: object) -> bool:
    """Return whether JSON can hold a setting."""
    if isinstance(value, Mapping):
        value = [*value, *value.values()]
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    kinds = (str, int, float, np.integer, np.floating, np.bool_, type(None))
    return isinstance(value, kinds)
