"""The usual causes of a difference, by its pattern."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from hookbridge.reference.array_norms import norm, wide
from hookbridge.reference.differences import Pairing
from hookbridge.reference.measures import Measure, finite
from hookbridge.reference.recording_files import RecordedStep, Recording
from hookbridge.reference.update_suspects import (
    gradients,
    ratio_of,
    state,
    update,
)


def suspects_of(pairing: Pairing, first: Measure) -> list[str]:
    """What usually makes such a first difference, the likeliest first."""
    by_layer: dict[str, Callable[[Pairing, Measure], Iterator[str]]] = {
        "data": _data,
        "initial weights": _initial,
        "forward": _forward,
        "gradients": gradients,
        "update": update,
        "state": state,
    }
    not_finite = list(_not_finite(pairing, first))
    if not_finite and first.layer not in ("data", "initial weights"):
        return [
            *not_finite,
            "a rate that is too large, a division by 0, the logarithm of 0, float16",
        ]
    return [*not_finite, *by_layer[first.layer](pairing, first)]


def _not_finite(pairing: Pairing, first: Measure) -> Iterator[str]:
    """What is NaN or infinite in one of the two, or in another way."""
    found = _compared(pairing, first)
    kinds = [_kind_of(value) for value in found]
    if kinds[0] == kinds[1]:
        return
    what = (
        "a loss that is"
        if first.layer == "forward"
        else (f"numbers of `{first.name}` that are")
    )
    yield f"{what} not finite: {kinds[0]} in the reference, {kinds[1]} in the port"


def _compared(pairing: Pairing, first: Measure) -> list[Any]:
    """The two values of a difference; `()` for one that is not recorded."""
    found: list[Any] = []
    for place, recording in enumerate((pairing.reference, pairing.port)):
        step = recording.steps[first.step - 1]
        parts = pairing.batch if first.layer == "data" else pairing.variables
        name = parts.pairs.get(first.name, first.name) if place else first.name
        found.append(_values(recording, step, first.layer).get(name, ()))
    return found


def _values(recording: Recording, step: RecordedStep, layer: str) -> Mapping[str, Any]:
    """What a recording has of a layer in a step, by name."""
    if layer == "data":
        return step.arrays("batch")
    if layer == "initial weights":
        return recording.initial
    if layer == "forward":
        return step.numbers
    if layer == "gradients":
        norms: dict[str, Any] = step.line["gradient_norms"]
        return norms
    changes: dict[str, Any] = step.line["change_norms"]
    return step.numbers | changes


def _kind_of(value: Any) -> str:
    """In which way an array or a number is not finite."""
    array = np.asarray(value)
    if array.dtype.kind not in "fc" or np.all(np.isfinite(array)):
        return "finite"
    if np.any(np.isnan(array)):
        return "NaN"
    return "-inf" if np.all(array[np.isinf(array)] < 0) else "inf"


def _close(a: Any, b: Any) -> bool:
    return a.shape == b.shape and bool(np.allclose(a, b, 1e-4, 1e-7))


def _data(pairing: Pairing, first: Measure) -> Iterator[str]:
    """What may have made two batches differ."""
    mine = pairing.reference.steps[first.step - 1].arrays("batch")
    other = pairing.port.steps[first.step - 1].arrays("batch")
    a = mine[first.name]
    b = next((v for v in other.values() if v.shape == a.shape), None)
    b = other.get(first.name, b)
    if b is None or a.shape != b.shape:
        yield "another shape: another batch size, or channels first for channels last"
        return
    if a.ndim and not {a.dtype.kind, b.dtype.kind} & {"S", "U"}:
        yield from _changed_numbers(first.name, wide(a), wide(b))
    for step in pairing.reference.steps:
        held = step.arrays("batch").get(first.name)
        if held is not None and step.number != first.step and _same(held, b):
            yield f"it is the batch of step {step.number}: another order of batches"
    yield "data that is read, shuffled or prepared otherwise; `hb.replay` gives it"


def _changed_numbers(name: str, a: Any, b: Any) -> Iterator[str]:
    """What may have made one array of numbers of another; bytes would have no -1."""
    if _close(np.sort(a, axis=0), np.sort(b, axis=0)):
        yield "the same examples in another order: shuffled, or read otherwise"
    for shift in (1, -1):
        if len(a) > 3 and _close(a[1:-1], np.roll(b, shift, axis=0)[1:-1]):
            yield f"shifted by one example: `{name}` is not that of its row"
        if _close(a, b + shift):
            yield f"`{name}` is {shift:+d} off: counted from 0 or from 1"
    ratio = ratio_of([(norm(a), norm(b))])
    if ratio is not None and _close(a * ratio, b):
        yield f"scaled by {ratio:.4g}: normalised in one of the two"


def _same(a: Any, b: Any) -> bool:
    return a.shape == b.shape and bool(np.all(a == b))


def _initial(pairing: Pairing, first: Measure) -> Iterator[str]:
    a = pairing.reference.initial[first.name]
    b = pairing.port.initial[pairing.variables.pairs[first.name]]
    if a.ndim > 1 and _close(a.T, b):
        yield "a transposed kernel: [in, out] of TensorFlow, [out, in] of PyTorch"
    elif sorted(a.shape) == sorted(b.shape) and a.shape != b.shape:
        yield "another order of axes: TensorFlow has the output last"
    yield "another initializer or seed; `hb.replay(...).weights` has the initial ones"


def _forward(pairing: Pairing, first: Measure) -> Iterator[str]:
    """What may have made two losses or outputs differ."""
    yield from _left_out(pairing)
    steps = pairing.reference.steps[first.step - 1], pairing.port.steps[first.step - 1]
    mine, other = finite(steps[0].loss), finite(steps[1].loss)
    ratio = other / mine if mine else math.nan
    sizes = {size for shape, _ in steps[0].line["batch"].values() for size in shape}
    for factor in sizes - {1}:
        if any(math.isclose(ratio, r, rel_tol=0.05) for r in (factor, 1 / factor)):
            yield f"a sum for a mean: {ratio:.4g} times the loss, of a {factor}"
    if first.step == 1:
        yield from _missing_l2(pairing, mine - other)
    drawn = [
        who
        for who, each in (("reference", pairing.reference), ("port", pairing.port))
        if each.header.get("random_ops")
    ]
    if drawn:
        yield f"dropout: the {' and the '.join(drawn)} draws random numbers"
    yield "dropout left on, or off, in one of the two"
    yield "a layer: its activation, padding or epsilon; BatchNormalization not training"
    yield "a term of the loss: l2 by the optimizer, label smoothing, weights, a mask"
    if abs(ratio - 1) < 0.02:
        yield "numbers of another type: mixed precision in one of the two"


def _left_out(pairing: Pairing) -> Iterator[str]:
    """Weights and parts of the batch that one of the two does not have."""
    for who, names in pairing.alone().items():
        if names:
            yield f"{', '.join(names)}: in the {who} alone, a layer or a bias"
    if pairing.batch.pairs and pairing.batch.unmatched:
        yield f"the port does not get `{'`, `'.join(pairing.batch.unmatched)}`"


def _missing_l2(pairing: Pairing, difference: float) -> Iterator[str]:
    """Whether the first losses differ by a round number times the weights' squares."""
    held = pairing.reference.initial
    squares = sum(norm(held[n]) ** 2 for n in _weights(pairing) if held[n].ndim > 1)
    rate = 2 * difference / squares if squares else 0.0
    if rate and _is_round(abs(rate)) and _explains(pairing, rate):
        who = "port" if rate > 0 else "reference"
        yield (
            f"no l2 in the loss of the {who}, or less: {abs(rate):.2g} / 2 times the "
            "squares"
        )


def _explains(pairing: Pairing, l2: float) -> bool:
    """Whether first gradients, where they are recorded, differ by that much l2."""
    parts = [r.steps[0].arrays("gradients") for r in (pairing.reference, pairing.port)]
    pairs = pairing.variables.pairs
    return all(
        np.allclose(parts[0][n] - parts[1][pairs[n]], l2 * value, 0.1, 0.02 * abs(l2))
        for n, value in pairing.reference.initial.items()
        if value.ndim > 1 and n in parts[0] and pairs.get(n) in parts[1]
    )


def _is_round(number: float) -> bool:
    """Whether a number has one digit such as 1, 2 or 5."""
    if not math.isfinite(number) or not number:
        return False
    digit = number / 10.0 ** math.floor(math.log10(number))
    return any(math.isclose(digit, d, rel_tol=5e-3) for d in (1, 2, 2.5, 5, 10))


def _weights(pairing: Pairing) -> list[str]:
    return list(pairing.reference.shapes("weight"))
