"""A cause of a difference: a hypothesis, and how much of the difference it explains."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hookbridge.reference.recordings.array_norms import norm

# A cause that explains less of the difference is not named.
LEAST = 0.98


@dataclass(frozen=True)
class Cause:
    """What may have made two recordings differ.

    Attributes:
      name: what kind of cause it is, such as "sum for mean".
      text: the cause in a sentence, with its numbers.
      explains: the part of the difference that it predicts, from 0 to 1; None for a
        fact that the recordings state, such as a setting.
      parameters: how many numbers were fitted to the difference. Of two causes that
        explain as much, the one with fewer is the likelier.
    """

    name: str
    text: str
    explains: float | None = None
    parameters: int = 0

    def __str__(self) -> str:
        if self.explains is None:
            return self.text
        # Never rounded up to the whole.
        percent = math.floor(1000 * self.explains) / 10
        return f"{self.text} (explains {percent:g} % of the difference)"


def rank(causes: Iterable[Cause]) -> list[Cause]:
    """Return the causes that explain enough, those that explain most first.

    Facts come last. Two causes whose parts differ by less than half a percent explain
    as much; then the one with fewer fitted numbers is first.
    """
    enough = [c for c in causes if c.explains is None or c.explains >= LEAST]

    def order(cause: Cause) -> tuple[float, int, float]:
        part = 0.0 if cause.explains is None else cause.explains
        return (-round(part * 200) / 200, cause.parameters, -part)

    # Of each kind the one that explains most, the first of equals, and every fact.
    best: dict[str, Cause] = {}
    for cause in sorted(enough, key=order):
        best.setdefault(cause.name, cause)
    best_of_kind = [c for c in enough if c.explains is None or c is best[c.name]]
    return sorted(best_of_kind, key=order)


def explained(difference: object, residual: object) -> float:
    """Return the part of a difference that is not in the residual, from 0 to 1."""
    size = norm(difference)
    if not size or not math.isfinite(size):
        return 0.0
    left = norm(residual)
    return max(0.0, 1.0 - left / size) if math.isfinite(left) else 0.0


def share_of(part: Any, whole: Any) -> float:
    """Return how often one array is in another, by least squares; 0 for one of zeros.

    Args:
      part: the array that is looked for.
      whole: an array of its shape.
    """
    size = float(np.vdot(part, part).real)
    return float(np.vdot(part, whole).real) / size if size else 0.0


def is_near(number: float, other: float, part: float = 1e-3) -> bool:
    """Return whether two numbers are nearly equal."""
    return math.isclose(number, other, rel_tol=part)


def flat(arrays: Iterable[Any]) -> Any:
    """Return arrays as one vector."""
    return np.concatenate([np.zeros(0), *(np.ravel(array) for array in arrays)])
