"""What programs of this folder record, as JSON."""
import numpy as np


def numbers(value):
    """Anything as rounded Python numbers."""
    if isinstance(value, dict):
        return {str(k): numbers(v) for k, v in sorted(value.items())}
    if isinstance(value, (list, tuple)):
        return [numbers(v) for v in value]
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, np.ndarray) and value.dtype == object:
        return numbers(value.tolist())
    if isinstance(value, (np.ndarray, np.generic, float)):
        return np.round(np.asarray(value, "float64"), 4).tolist()
    return value
