"""Pure translation between what a session returns and what a callback expects.

No TensorFlow state lives here: numbers in, numbers out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np


def as_log_value(value: Any) -> Any:
    """Return a fetched value as in Keras's `logs`: scalars become Python floats."""
    if isinstance(value, (np.ndarray, np.generic)):
        is_number = value.ndim == 0 and value.dtype.kind in "fiub"
    else:
        is_number = isinstance(value, (bool, int, float))
    return float(value) if is_number else value


def as_test_logs(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the result of a validation as `on_test_end` gets it: without prefix."""
    return {
        key.removeprefix("val_"): as_log_value(value)
        for key, value in result.items()
        if key != "global_step"
    }
