"""How the reference clips, by the norms of its gradients before and after."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from hookbridge.reference.causes.cause import is_near
from hookbridge.reference.causes.update_rules import Clip
from hookbridge.reference.recordings.array_norms import norm, wide
from hookbridge.reference.recordings.differences import Pairing
from hookbridge.reference.recordings.recording_files import RecordedStep

AS_RECORDED: Clip = "as recorded"


class Clipping(NamedTuple):
    """A way to clip, and its limit."""

    clip: Clip
    limit: float


NONE = Clipping("", 0.0)


def clippings_of(pairing: Pairing, steps: int) -> list[Clipping]:
    """Return the ways in which the reference may clip in its first steps.

    Each predicts what an optimizer gets. The last one takes by how much the recorded
    norms became smaller, in whatever way.
    """
    for step in pairing.reference.steps[:steps]:
        raw, applied = _norms(step)
        changed = [n for n in raw if not is_near(raw[n], applied[n], 1e-5)]
        if changed:
            limits = [
                NONE,
                Clipping("global norm", math.hypot(*applied.values())),
                norm_limit(step),
            ]
            value = _value_limit(step, changed)
            if value:
                limits.append(Clipping("value", value))
            return [*limits, Clipping(AS_RECORDED, limits[2].limit)]
    return [NONE]


def norm_limit(step: RecordedStep) -> Clipping:
    """Return the clipping of each gradient by its norm, as far as a step tells it.

    Of rows that a batch has twice TensorFlow 1 takes the norm before it adds them up.
    """
    raw, applied = _norms(step)
    rows = step.line.get("of_rows", ())
    clipped = [n for n in raw if applied[n] < raw[n] * (1 - 1e-5)]
    whole = [applied[n] for n in clipped if n not in rows]
    return Clipping("norm", max(whole or [applied[n] for n in clipped], default=0.0))


def scales_of(step: RecordedStep, names: list[str]) -> list[float]:
    """Return how many times as large each gradient of a step is after clipping."""
    raw, applied = _norms(step)
    return [applied[n] / raw[n] if raw.get(n) else 1.0 for n in names]


def _norms(step: RecordedStep) -> tuple[dict[str, float], dict[str, float]]:
    """Return the finite norms before and after clipping, of the variables with both."""
    raw, applied = step.line["gradient_norms"], step.line["applied_norms"]
    names = [n for n in applied if n in raw]
    names = [n for n in names if math.isfinite(raw[n]) and math.isfinite(applied[n])]
    return {n: raw[n] for n in names}, {n: applied[n] for n in names}


def _value_limit(step: RecordedStep, changed: list[str]) -> float:
    """Return the limit of elements that gives the recorded norm; 0 if none is known."""
    gradients: dict[str, Any] = step.arrays("gradients")
    raw, applied = _norms(step)
    names = [n for n in changed if n in gradients and np.all(np.isfinite(gradients[n]))]
    if not names:
        return 0.0
    name = min(names, key=lambda n: applied[n] / raw[n])
    gradient = wide(gradients[name])
    low, high = 0.0, float(np.abs(gradient).max(initial=0.0))
    for _ in range(60):
        middle = (low + high) / 2
        is_small = norm(np.clip(gradient, -middle, middle)) < applied[name]
        low, high = (middle, high) if is_small else (low, middle)
    return (low + high) / 2
