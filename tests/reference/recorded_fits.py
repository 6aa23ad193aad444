"""A `fit` that is recorded, and where it first differs from another recording."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hookbridge as hb
from hookbridge.reference.comparison import Comparison


def recorded(model: Any, folder: Path, *data: Any) -> Path:
    callbacks = hb.as_callbacks([hb.recorder(folder)])
    model.fit(*data, shuffle=False, verbose=0, callbacks=callbacks)
    return folder


def first_difference(result: Comparison) -> tuple[str | None, int, str]:
    assert result.first is not None, str(result)
    return result.layer, result.first.step, result.first.name
