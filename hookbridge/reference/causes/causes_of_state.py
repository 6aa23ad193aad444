"""Causes of a difference in moving averages and counters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from hookbridge.reference.causes.cause import (
    Cause,
    explained,
    flat,
    is_near,
    share_of,
)
from hookbridge.reference.recordings.array_norms import norm, wide
from hookbridge.reference.recordings.differences import Pairing
from hookbridge.reference.recordings.measures import Measure


class _Moved(NamedTuple):
    """A moving average before a step, and after it in both."""

    before: Any
    reference: Any
    port: Any


def state_causes(pairing: Pairing, first: Measure) -> Iterator[Cause]:
    """Yield what made moving averages, or the global step, differ."""
    if pairing.reference.variables[first.name]["kind"] == "counter":
        yield from _counter(pairing, first)
        return
    moved = dict(_moving_averages_of(pairing, first.step))
    if not moved:
        return
    yield from _not_moved(moved)
    yield from _momentum(moved)
    yield from _sample_variance(moved)


def _counter(pairing: Pairing, first: Measure) -> Iterator[Cause]:
    a, b = pairing.moves(first)
    yield Cause(
        "counter",
        f"`{first.name}` moves by {b:g} in the port in a step, by {a:g} in the "
        "reference: two updates in a step, or epochs",
    )


def _moving_averages_of(pairing: Pairing, number: int) -> Iterator[tuple[str, _Moved]]:
    """Yield the moving averages around a step that both have whole."""
    values = [step.arrays("variables") for step in pairing.steps[number - 1]]
    before = pairing.reference.before(number)
    for name, partner in pairing.variables.pairs.items():
        is_state = pairing.reference.variables[name]["kind"] == "state"
        if is_state and name in before and name in values[0] and partner in values[1]:
            course = (before[name], values[0][name], values[1][partner])
            if len({np.shape(value) for value in course}) == 1:
                yield name, _Moved(*map(wide, course))


def _not_moved(moved: dict[str, _Moved]) -> Iterator[Cause]:
    """Yield moving averages that the port leaves as they were."""
    still = [n for n, m in moved.items() if np.array_equal(m.port, m.before)]
    if still:
        verdict = "no moving average moves" if len(still) == len(moved) else "unmoved: "
        names = "" if len(still) == len(moved) else ", ".join(still)
        part = _explained_part(moved, {name: moved[name].before for name in still})
        yield Cause(
            "moving averages",
            f"{verdict}{names} in the port: they are not updated, or "
            "BatchNormalization does not train",
            part,
        )


def _momentum(moved: dict[str, _Moved]) -> Iterator[Cause]:
    """Yield another momentum, if all move by one factor."""
    a = flat(m.reference - m.before for m in moved.values())
    b = flat(m.port - m.before for m in moved.values())
    factor = share_of(a, b)
    if factor <= 0 or is_near(factor, 1.0):
        return
    predicted = {
        name: m.before + factor * (m.reference - m.before) for name, m in moved.items()
    }
    text = (
        f"the momentum of BatchNormalization: 1 - momentum is {factor:.4g} times as "
        "large in the port"
    )
    swapped = factor / (1 + factor)
    if factor > 1 and is_near(swapped, round(swapped, 3), 1e-4):
        text += (
            f", as {swapped:.3g} for {1 - swapped:.3g}: PyTorch's momentum is 1 less "
            "TensorFlow's"
        )
    yield Cause("momentum", text, _explained_part(moved, predicted), 1)


def _sample_variance(moved: dict[str, _Moved]) -> Iterator[Cause]:
    """Yield variances of a sample, which are n / (n - 1) times as large.

    With the momentum `a` a moving average after a step is `a * before`, and the rest
    is the batch's. So the difference is that rest, divided by `n - 1` where the port
    has those of a sample, and by `-n` where the reference has.
    """
    far = {
        name: m
        for name, m in moved.items()
        if norm(m.port - m.reference) > 1e-6 * norm(m.reference)
    }
    shares, predicted = [], {}
    for name, m in far.items():
        columns = np.stack([m.reference.ravel(), -m.before.ravel()], 1)
        difference = (m.port - m.reference).ravel()
        share, _, _, _ = np.linalg.lstsq(columns, difference, rcond=None)
        if m.before.size < 4 or not share[0]:
            return
        shares.append(float(share[0]))
        predicted[name] = m.reference + (columns @ share).reshape(m.reference.shape)
    if not shares or min(shares) * max(shares) <= 0 or max(map(abs, shares)) > 1:
        return
    n = round(1 + 1 / shares[0] if shares[0] > 0 else -1 / shares[0])
    who, peer = ("port", "reference") if shares[0] > 0 else ("reference", "port")
    yield Cause(
        "unbiased variance",
        f"the moving variance of the {who} is of a sample, n / (n - 1) with n = {n}; "
        f"the {peer} divides by n",
        _explained_part(moved, predicted),
        2,
    )


def _explained_part(moved: dict[str, _Moved], predicted: dict[str, Any]) -> float:
    """Return the part of the difference that predicted averages of the port explain."""

    def scaled(name: str, value: Any) -> Any:
        m = moved[name]
        return value / (norm(m.reference - m.before) or 1.0)

    difference = flat(scaled(n, m.port - m.reference) for n, m in moved.items())
    residual = flat(
        scaled(n, m.port - predicted.get(n, m.reference)) for n, m in moved.items()
    )
    return explained(difference, residual)
