"""Causes in the loss: a sum for a mean, and l2 of some or all weights."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from hookbridge.ground.groups import grouped
from hookbridge.reference.causes.cause import Cause, is_near, share_of
from hookbridge.reference.causes.first_step import StepEvidence
from hookbridge.reference.recordings.array_norms import norm

# A share of l2 in a gradient that is this part of the largest one is rounding.
_SMALL = 0.02


def loss_causes(evidence: StepEvidence) -> Iterator[Cause]:
    """Yield a factor of the loss, l2, and both."""
    if not evidence.gradients:
        yield from _factor_of_losses(evidence)
        return
    yield from _factor(evidence)
    yield from _l2(evidence)
    yield from _factor_without_l2(evidence)


def _factor_of_losses(evidence: StepEvidence) -> Iterator[Cause]:
    """Yield the cause without gradients: an exact product of dimensions."""
    if evidence.losses is None or not all(evidence.losses):
        return
    factor = evidence.losses[1] / evidence.losses[0]
    if product := product_of_dimensions(factor, evidence.batch):
        size = abs(math.log(factor))
        part = 1 - abs(size - math.log(math.prod(product))) / size
        yield Cause("sum for mean", _sum_text(factor, product, "the loss"), part, 1)


def _factor(evidence: StepEvidence) -> Iterator[Cause]:
    """Yield that all gradients, and perhaps the loss, differ by one number."""
    pairs = evidence.gradients.values()
    above = sum(_dot(p.reference, p.port) / p.size**2 for p in pairs)
    below = sum(_dot(p.reference, p.reference) / p.size**2 for p in pairs)
    factor = above / below if below else 0.0
    if not factor or is_near(factor, 1.0):
        return
    predicted = {n: factor * p.reference for n, p in evidence.gradients.items()}
    product = product_of_dimensions(factor, evidence.batch)
    for scaled, of_port in (
        ("the loss and all gradients", factor * evidence.loss),
        ("all gradients, but not the loss,", evidence.loss),
    ):
        part = evidence.explained(predicted, of_port)
        if product:
            yield Cause("sum for mean", _sum_text(factor, product, scaled), part, 1)
        elif factor < 0:
            text = f"{scaled} are {factor:.5g} times as large: another sign"
            yield Cause("factor", text, part, 1)
        else:
            text = f"{scaled} are {factor:.5g} times as large in the port"
            yield Cause("factor", text, part, 1)


def _l2(evidence: StepEvidence) -> Iterator[Cause]:
    """Yield a share of each weight in its gradient, in one of the two only."""
    named = _shares(
        evidence,
        {n: p.port - p.reference for n, p in evidence.gradients.items()},
    )
    if not named:
        return
    predicted = {
        name: evidence.gradients[name].reference
        + named[name] * evidence.gradients[name].weight
        for name in named
    }
    added = sum(
        share / 2 * norm(evidence.gradients[name].weight) ** 2
        for name, share in named.items()
    )
    part = evidence.explained(predicted, evidence.loss + added)
    text = l2_text(named, list(evidence.gradients))
    yield Cause("l2", text, part, len(set(_round_shares(named).values())))
    # Weight decay that was put into the gradients by hand is not in the loss.
    if evidence.losses is not None and is_near(*evidence.losses, 1e-5):
        part = evidence.explained(predicted, evidence.losses[0])
        yield Cause("l2", f"{text}; the losses have the same", part, 2)


def _factor_without_l2(evidence: StepEvidence) -> Iterator[Cause]:
    """Yield a factor of the loss without its l2 term, which both have."""
    factor = _factor_beyond_weights(evidence)
    product = product_of_dimensions(factor, evidence.batch)
    if not product:
        return
    named = _shares(
        evidence,
        {
            name: (p.port - factor * p.reference) / (1 - factor)
            for name, p in evidence.gradients.items()
        },
    )
    if not named:
        return
    weights = {name: evidence.gradients[name].weight for name in named}
    predicted = {
        name: factor * p.reference
        + (1 - factor) * (named[name] * weights[name] if name in named else 0.0)
        for name, p in evidence.gradients.items()
    }
    term = sum(named[name] / 2 * norm(weights[name]) ** 2 for name in named)
    loss = factor * (evidence.loss - term) + term
    part = evidence.explained(predicted, loss)
    scaled = "the loss without its l2 term, and its gradients,"
    yield Cause("sum for mean", _sum_text(factor, product, scaled), part, 2)


def _factor_beyond_weights(evidence: StepEvidence) -> float:
    """Return the factor of what is in the gradients but a share of the weights.

    Else 0.
    """
    above = below = 0.0
    for p in evidence.gradients.values():
        reference, port = _without(p.reference, p.weight), _without(p.port, p.weight)
        above += _dot(reference, port) / p.size**2
        below += _dot(reference, reference) / p.size**2
    return above / below if below else 0.0


def l2_text(shares: Mapping[str, float], every: list[str]) -> str:
    """Return which weights have how much more, or less, l2 in the port."""
    lines = []
    by_share = grouped((share, name) for name, share in _round_shares(shares).items())
    for share, names in by_share.items():
        all_of = len(names) == len(every)
        which = "every variable" if all_of else ", ".join(f"`{n}`" for n in names)
        more = "more" if share > 0 else "less"
        lines.append(f"{abs(share):.3g} times {which} {more}")
    text = f"l2: the gradients of the port have {' and '.join(lines)}"
    matching = [name for name in every if name not in shares]
    return f"{text}; the other variables match" if matching else text


def product_of_dimensions(factor: float, batch: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the dimensions of a batch whose product a factor, or its inverse, is."""
    if not factor or not math.isfinite(factor) or factor < 0:
        return ()
    size = max(factor, 1 / factor)
    for value in batch.values():
        shape = [n for n in value.shape if n > 1]
        for count in range(1, len(shape) + 1):
            for dimensions in itertools.combinations(shape, count):
                if is_near(size, math.prod(dimensions), 2e-4):
                    return dimensions
    return ()


def _sum_text(factor: float, product: tuple[int, ...], what: str) -> str:
    by = " x ".join(map(str, product))
    whole = math.prod(product)
    factors = f" ({by})" if len(product) > 1 else ""
    if factor > 1:
        large = f"{whole:,} times as large{factors}"
        return f"a sum for a mean in the port: {what} are {large}"
    return f"a mean for a sum in the port: {what} are 1/{whole:,} as large{factors}"


def _dot(a: Any, b: Any) -> float:
    return float(np.vdot(a, b).real)


def _without(gradient: Any, weight: Any) -> Any:
    return gradient - share_of(weight, gradient) * weight


def _shares(evidence: StepEvidence, rests: Mapping[str, Any]) -> dict[str, float]:
    """Return the shares of weights in arrays; None for too few numbers to tell."""
    if evidence.count < 3 * len(rests):
        return {}
    pairs = evidence.gradients
    shares = {name: share_of(pairs[name].weight, rests[name]) for name in rests}
    most = max(map(abs, shares.values()), default=0.0)
    return {n: s for n, s in shares.items() if abs(s) > _SMALL * most}


def _round_shares(shares: Mapping[str, float]) -> dict[str, float]:
    """Return shares of two digits, so that equal ones are equal."""
    return {name: float(f"{share:.2g}") for name, share in shares.items()}
