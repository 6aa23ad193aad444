"""Whether Python collects garbage just now, in the middle of whatever it was doing."""

from __future__ import annotations

import gc
from typing import Any

_phase = "stop"


def _note(phase: str, info: dict[str, Any]) -> None:
    global _phase
    _phase = phase


def watch_collections() -> None:
    """Note collections, for `is_collected_now`, from here on."""
    if _note not in gc.callbacks:
        gc.callbacks.append(_note)


def is_collected_now() -> bool:
    """Return whether a collection is under way, which may have begun inside TensorFlow.

    TensorFlow may hold locks then that a run of a session would wait for.
    """
    return _phase == "start"
