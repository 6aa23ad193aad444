"""What two recordings have of the step that differs first: loss, gradients, weights."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from hookbridge.reference.causes.cause import explained, flat
from hookbridge.reference.recordings.array_norms import norm, wide
from hookbridge.reference.recordings.differences import Pairing
from hookbridge.reference.recordings.measures import finite


class Pair(NamedTuple):
    """A gradient in both recordings.

    Attributes:
      reference: the reference's.
      port: the port's.
      weight: the variable before the step.
      size: how large a difference is one whole part.
    """

    reference: Any
    port: Any
    weight: Any
    size: float


class StepEvidence:
    """The loss and the whole gradients of one step in both recordings."""

    def __init__(self, pairing: Pairing, number: int) -> None:
        self.pairing, self.number = pairing, number
        steps = pairing.reference.steps[number - 1], pairing.port.steps[number - 1]
        # The reference's; it counts only if both have one.
        self.loss: float = finite(steps[0].loss)
        self.losses: tuple[float, float] | None = None
        if steps[0].loss is not None and steps[1].loss is not None:
            self.losses = self.loss, finite(steps[1].loss)
        self.batch: dict[str, Any] = steps[0].arrays("batch")
        self.gradients: dict[str, Pair] = dict(self._pairs(*steps))

    def _pairs(self, reference: Any, port: Any) -> Iterator[tuple[str, Pair]]:
        """Yield the finite gradients of equal shape that both have, by variable."""
        gradients = reference.arrays("gradients")
        port_gradients = port.arrays("gradients")
        weights = self.pairing.reference.before(self.number)
        whole = math.hypot(*(norm(value) for value in gradients.values()), 0.0)
        for name, partner in self.pairing.variables.pairs.items():
            a, b = gradients.get(name), port_gradients.get(partner)
            if a is None or b is None or name not in weights:
                continue
            if a.shape == b.shape and np.all(np.isfinite(a)) and np.all(np.isfinite(b)):
                size = max(norm(a), 1e-3 * whole)
                yield name, Pair(wide(a), wide(b), wide(weights[name]), size or 1.0)

    @property
    def count(self) -> int:
        """How many numbers there are to explain."""
        return sum(pair.reference.size for pair in self.gradients.values())

    def explained(self, gradients: dict[str, Any], loss: float | None) -> float:
        """Return the part of the difference that predicted values of the port explain.

        Args:
          gradients: `{recorded name: gradient in the port}` as it is predicted; those
            that are missing are predicted to be the reference's.
          loss: the predicted loss of the port; None predicts none.
        """
        differences, residuals = [], []
        for name, pair in self.gradients.items():
            predicted = gradients.get(name, pair.reference)
            differences.append((pair.port - pair.reference) / pair.size)
            residuals.append((pair.port - predicted) / pair.size)
        if self.losses is not None and loss is not None:
            size = abs(self.losses[0]) or 1.0
            differences.append((self.losses[1] - self.losses[0]) / size)
            residuals.append((self.losses[1] - loss) / size)
        return explained(flat(differences), flat(residuals))
