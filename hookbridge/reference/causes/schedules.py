"""Causes of another learning rate: a schedule that is off by a step, or by its form."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from hookbridge.reference.causes.cause import Cause, explained, share_of
from hookbridge.reference.recordings.differences import Pairing
from hookbridge.reference.recordings.measures import Measure


def rate_causes(pairing: Pairing, first: Measure) -> Iterator[Cause]:
    """Yield what made two recorded learning rates differ."""
    if first.name != "learning_rate":
        return
    both = [(a.learning_rate, b.learning_rate) for a, b in pairing.steps]
    rates = np.array([(a, b) for a, b in both if a is not None and b is not None])
    reference_rates, port_rates = rates.T
    difference = port_rates - reference_rates
    early, late = slice(-1), slice(1, None)
    for text, part, partner in (("ahead of", early, late), ("behind", late, early)):
        # The step at the end has none to be compared with.
        if len(reference_rates) < 3:
            break
        residual = port_rates[part] - reference_rates[partner]
        text = f"the port's schedule is one step {text} the reference's"
        yield Cause("schedule", text, explained(difference[part], residual))
    yield from _staircase(reference_rates, port_rates)
    factor = share_of(reference_rates, port_rates)
    text = f"the rate is {factor:.4g} times as large in the port, in every step"
    yield Cause(
        "rate", text, explained(difference, port_rates - factor * reference_rates), 1
    )
    a, b = pairing.steps[first.step - 1]
    text = f"the rate of step {first.step} is {a.learning_rate:.6g} in the reference "
    # It says what differs, and comes after what explains it.
    yield Cause("rate", f"{text}and {b.learning_rate:.6g} in the port")


def _staircase(mine: Any, other: Any) -> Iterator[Cause]:
    """Yield that one is constant for several steps where the other changes in each."""
    for who, flat, smooth in (("reference", mine, other), ("port", other, mine)):
        jumps = [n for n in range(1, len(flat)) if flat[n] != flat[n - 1]]
        if np.any(np.diff(smooth) == 0) or len(jumps) > (len(flat) - 1) / 2:
            continue
        # Where a stair begins, both are the same; a smooth one decays evenly between.
        begins = [0, *jumps]
        ratios = smooth[1:] / smooth[:-1]
        if np.allclose(flat[begins], smooth[begins], 1e-3, 0) and np.allclose(
            ratios, ratios[0], 1e-3, 0
        ):
            text = f"a staircase in the {who} only: the other one decays in each step"
            if not jumps:
                text = (
                    f"the rate of the {who} is the same in all of these steps, a "
                    "staircase or none; the other one decays in each"
                )
            yield Cause("staircase", text, 1.0)
