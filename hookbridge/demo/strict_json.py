"""Reports as JSON that every reader takes."""

from __future__ import annotations

import json
import math
from typing import Any


def to_json(report: Any) -> str:
    """Indented JSON, in which a number that is none (NaN, infinite) is `null`.

    Python would write `NaN`, which is no JSON.
    """
    return json.dumps(_strict(report), indent=2, allow_nan=False)


def _strict(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _strict(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_strict(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
