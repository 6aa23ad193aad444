"""Where Adam adds epsilon: what a right port in another framework may differ by."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from hookbridge.reference.causes.cause import LEAST, Cause, is_near
from hookbridge.reference.causes.known_rule import UpdateRules
from hookbridge.reference.causes.update_rules import Rule

# The epsilons that frameworks begin with are at most this; a larger one was chosen.
_DEFAULT = 1.01e-7


class EpsilonCause(NamedTuple):
    """Another epsilon of Adam, or another place of it, in the port.

    Attributes:
      cause: what it explains of the difference.
      is_of_framework: whether it is not a mistake: the numbers are defaults, and only
        gradients that are nearly rounding move weights differently.
      size: how far it moves weights, as a part of a move.
    """

    cause: Cause
    is_of_framework: bool
    size: float


def epsilon_of(rules: UpdateRules) -> EpsilonCause | None:
    """Return the epsilon that explains the port's moves; None if none does."""
    rule = rules.rule
    if rule.kind != "adam":
        return None
    causes = [
        Cause("epsilon", _text(rule, candidate), rules.explained(candidate), parameters)
        for candidate, parameters in _candidates(rules)
    ]
    candidates = [candidate for candidate, _ in _candidates(rules)]
    # The reference's own number comes first; a fitted one has to be better.
    best = max(
        range(len(causes)),
        key=lambda n: (causes[n].explains or 0.0) - 0.01 * causes[n].parameters,
    )
    cause, fitted_rule = causes[best], candidates[best]
    if (cause.explains or 0.0) < LEAST:
        return None
    numbers = rule.epsilon, fitted_rule.epsilon
    return EpsilonCause(cause, max(numbers) <= _DEFAULT, rules.size)


def _candidates(rules: UpdateRules) -> Iterator[tuple[Rule, int]]:
    """Yield rules with another epsilon, and how many numbers were fitted."""
    rule = rules.rule
    yield replace(rule, epsilon_last=True), 0
    # Those of frameworks, and others that people choose.
    for power in range(-10, 0):
        epsilon = 10.0**power
        for is_last in (False, True):
            if not is_near(epsilon, rule.epsilon):
                parameters = 0 if epsilon <= _DEFAULT else 1
                yield replace(rule, epsilon=epsilon, epsilon_last=is_last), parameters
    for is_last in (False, True):

        def make(value: float, last: bool = is_last) -> Rule:
            return replace(rule, epsilon=math.exp(value), epsilon_last=last)

        best, _ = rules.fitted(make, np.log(np.geomspace(1e-10, 10, 80)))
        yield make(best), 2


def _text(rule: Rule, other: Rule) -> str:
    """Return both epsilons in words, and what to set in the port."""
    first = math.sqrt(1 - rule.beta2)
    if other.epsilon_last:
        equal = rule.epsilon / first
        return (
            f"epsilon: the port adds {other.epsilon:.2g} after the correction of the "
            f"bias, as PyTorch does, the reference {rule.epsilon:.2g} before it; in "
            f"the port {equal:.2g} is the same at step 1, and "
            f"{rule.epsilon:.2g} after many steps"
        )
    return (
        f"epsilon: {other.epsilon:.2g} in the port, {rule.epsilon:.2g} in the "
        f"reference; set epsilon={rule.epsilon:.2g} in the port"
    )
