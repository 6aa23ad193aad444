"""One difference of two recordings, and how it is measured."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from hookbridge.reference.recordings.array_norms import norm, wide

# The layers in the order in which causes come, and the tolerance of each in the first
# step, as a multiple of the loss's.
LAYERS = {
    "data": 0.05,
    "initial weights": 0.05,
    "forward": 1.0,
    "gradients": 20.0,
    "update": 80.0,
    "state": 80.0,
}


class Measure(NamedTuple):
    """One difference: which layer, step and variable, and how large it may be.

    `difference` is relative to what is compared, see docs/reference-runs.md; it is
    infinite where one of the two is not finite and the other is not the same.
    """

    layer: str
    step: int
    name: str
    difference: float
    tolerance: float

    @property
    def differs(self) -> bool:
        """Return whether it is more than rounding."""
        return not self.difference <= self.tolerance


@dataclass(frozen=True)
class Layer:
    """One layer of a comparison: what was measured, and the first that differs."""

    name: str
    measures: list[Measure]
    why_not: str  # why nothing was measured

    @property
    def first(self) -> Measure | None:
        """Of the first step with a difference, the one that is farthest off."""
        differing = [m for m in self.measures if m.differs]
        steps = [m for m in differing if m.step == differing[0].step]
        return max(steps, key=lambda m: m.difference / m.tolerance, default=None)


def status(layer: Layer) -> str:
    """Return what a layer is: "same", "differs from step N" or "not compared"."""
    if not layer.measures:
        return "not compared"
    return f"differs from step {layer.first.step}" if layer.first else "same"


def apart(a: Any, b: Any) -> float:
    """Return the norm of the difference of two arrays.

    NaN is the same as NaN, and an infinite number as itself. All else that is not
    finite is infinitely far off: NaN would hide in sums and in comparisons.
    """
    if a.shape != b.shape:
        return math.inf
    if a.dtype.kind in "SU" or b.dtype.kind in "SU":
        return 0.0 if a.tolist() == b.tolist() else math.inf
    a, b = wide(a), wide(b)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    if not np.all(same | (np.isfinite(a) & np.isfinite(b))):
        return math.inf
    with np.errstate(invalid="ignore"):  # infinite less infinite, which is the same
        return norm(np.where(same, 0.0, a - b))


def distance(a: object, b: object, floor: float = 0.0) -> float:
    """Return how far one array is from another, as a part of the first one's norm."""
    far = apart(a, b)
    if far in (0.0, math.inf):
        return far
    size = max(norm_of_finite(a), floor)
    return far / size if size else math.inf


def norm_of_finite(value: Any) -> float:
    """Return the norm of those elements that are finite."""
    value = wide(value)
    return norm(value[np.isfinite(value)])


def beyond_rounding(far: float, size: float, rounding: float) -> float:
    """Return what of a difference is more than rounding, as a part of a size."""
    if far in (0.0, math.inf):
        return far
    far = max(0.0, far - rounding)
    return far / size if size else (math.inf if far else 0.0)


def gap(a: float, b: float) -> float:
    """Return how far two numbers are apart, by the rules of `apart`."""
    if a == b or (math.isnan(a) and math.isnan(b)):
        return 0.0
    return abs(a - b) if math.isfinite(a) and math.isfinite(b) else math.inf


def relative(a: float, b: float, size: float) -> float:
    """Return a difference of numbers as a part of a size.

    Two that are NaN are equal.
    """
    return beyond_rounding(gap(a, b), size, 0.0)


def finite(number: float | None) -> float:
    """Return a number that others are measured by; 0 if it is none, or not finite."""
    return 0.0 if number is None or not math.isfinite(number) else number
