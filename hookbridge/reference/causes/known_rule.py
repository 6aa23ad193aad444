"""The rule of the reference's optimizer, and how the port's moves differ from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from hookbridge.reference.causes.cause import (
    explained,
)
from hookbridge.reference.causes.courses import Updates, updates_of
from hookbridge.reference.causes.recorded_clipping import AS_RECORDED, clippings_of
from hookbridge.reference.causes.update_rules import Rule, declared_rules
from hookbridge.reference.recordings.differences import Pairing

# How well a rule has to predict the reference's own moves.
_FITS = 5e-3
Make = Callable[[float], Rule]


class UpdateRules:
    """The reference's rule, and what the port's moves differ by from it."""

    def __init__(self, updates: Updates, rule: Rule, *, of_rows: bool) -> None:
        self.updates, self.rule, self.of_rows = updates, rule, of_rows
        self.predicted: Any = rule.moves(updates.port)

    def explained(self, rule: Rule) -> float:
        """Return the part of the difference that another rule in the port explains."""
        port = self.updates.port
        return self.explained_but(port.moves - rule.moves(port))

    def explained_but(self, residual: object) -> float:
        """Return the part of the difference that is not in what is left of moves."""
        scaled = self.updates.scaled
        difference = scaled(self.updates.port.moves - self.predicted)
        return explained(difference, scaled(residual))

    def fitted(self, make: Make, values: Any) -> tuple[float, float]:
        """Return the number with which a rule explains most, and how much that is.

        Args:
          make: makes a rule of a number.
          values: numbers in order, between which it is searched.
        """
        parts = [self.explained(make(value)) for value in values]
        best = int(np.argmax(parts))
        low, high = values[max(best - 1, 0)], values[min(best + 1, len(values) - 1)]
        for _ in range(40):
            inner = [low + (high - low) * part for part in (0.382, 0.618)]
            first, second = (self.explained(make(value)) for value in inner)
            low, high = (low, inner[1]) if first >= second else (inner[0], high)
        middle = (low + high) / 2
        in_middle = self.explained(make(middle))
        at_end = parts[best]
        return (middle, in_middle) if in_middle >= at_end else (values[best], at_end)

    @property
    def size(self) -> float:
        """How far the port's moves are from the prediction, as a part of a move."""
        difference = self.updates.scaled(self.updates.port.moves - self.predicted)
        return float(np.sqrt((difference**2).mean())) if difference.size else 0.0


def rules_of(pairing: Pairing, until: int) -> UpdateRules | None:
    """Return the reference's rule and the port's moves; None without such a rule."""
    updates = updates_of(pairing, until)
    optimizers = pairing.reference.header.get("optimizer") or []
    if updates is None or len(optimizers) != 1:
        return None
    slots = _initial_slots(pairing)
    # What clips in a known way comes before what the recorded norms tell alone.
    clippings = clippings_of(pairing, updates.steps)
    for choice in (
        [c for c in clippings if c.clip != AS_RECORDED],
        [c for c in clippings if c.clip == AS_RECORDED],
    ):
        rules = [
            replace(rule, clip=clip, limit=limit)
            for rule in declared_rules(optimizers[0], slots)
            for clip, limit in choice
        ]
        off = [_off(rule, updates) for rule in rules]
        if off and min(off) <= _FITS:
            of_rows = bool(pairing.reference.steps[0].line.get("of_rows"))
            return UpdateRules(updates, rules[int(np.argmin(off))], of_rows=of_rows)
    return None


def _initial_slots(pairing: Pairing) -> dict[str, Any]:
    """Return the reference's initial values of what optimizers keep of weights."""
    kinds = pairing.reference.variables
    return {
        name: value
        for name, value in pairing.reference.initial.items()
        if kinds[name]["kind"] == "other" and name.rpartition("/")[0] in kinds
    }


def _off(rule: Rule, updates: Updates) -> float:
    """Return how far a rule's prediction of the reference's moves is off."""
    course = updates.reference
    moves = rule.moves(course) - course.moves
    # A float32 weight cannot move by less than the unit of its last place.
    rounding = 1.2e-7 * np.abs(course.weights)
    moves = np.maximum(np.abs(moves) - rounding, 0.0)
    return float(np.sqrt((updates.scaled(moves) ** 2).mean()))
