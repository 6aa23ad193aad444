"""Ends of the runs of `moment_hosts`, and what these and new runs leave together."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from moment_hosts import EPOCHS, LENGTH, RATE, Ending, Left

WITHIN, AT_END = LENGTH + 2, 2 * LENGTH
ENDS = (
    *itertools.product(
        ("hook", "later hook", "error", "killed", "sigterm", "callback", "data"),
        (WITHIN, AT_END),
    ),
    ("epoch's callback", AT_END),
    ("epochs", AT_END),
)
# Which steps are saved, and whether the saver stands before the callback.
SAVES = tuple(itertools.product((1, 3, LENGTH, 10**6), (True, False)))


def ending(how: str, step: int, number: int) -> Ending:
    """An end; which steps are saved goes by its number in a table."""
    save_steps, is_first = SAVES[number % len(SAVES)]
    epochs = step // LENGTH if how == "epochs" else EPOCHS
    return Ending(how, step, save_steps, is_first, epochs)


def expected(whole: Left, host: str, ending: Ending) -> Any:
    """What both runs leave: what one leaves, unless the epoch is another one."""
    is_at_end = ending.step % LENGTH == 0
    if ending.how in ("callback", "data") and not is_at_end:
        lengths = [LENGTH, ending.step % LENGTH, *[LENGTH] * (EPOCHS - 2)]
        both = simulated(lengths, host in ("session", "estimator"))
        rate, weight = map(nearly, both)
        return whole._replace(rate=rate, weight=weight)
    is_saved = ending.step % ending.save_steps == 0
    is_lost = ending.how in ("error", "killed") and host in ("fit", "own_loop")
    if is_lost and is_at_end and is_saved:
        # The epoch has all its steps, and nobody delivers its end later.
        slot = whole.slot and 2 * whole.slot
        return Left(whole.begins, EPOCHS - 1, 2 * whole.rate, whole.weight / 2, slot)
    return whole


def nearly(number: float) -> Any:
    return pytest.approx(number)


def simulated(lengths: list[int], learns: bool) -> tuple[float, float]:
    """The rate and the weight after epochs of these lengths."""
    rate, weight, momentum = RATE, 1.0, 0.0
    for length in lengths:
        rate, weight = rate * 0.75, weight / 0.75
        for _ in range(length * learns):
            momentum = 0.5 * momentum + 2 * weight
            weight -= rate * momentum
        rate, weight = rate * 0.5, weight / 0.5
    return rate, weight
