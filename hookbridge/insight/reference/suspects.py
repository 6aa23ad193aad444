"""The usual causes of a difference, by its pattern."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from hookbridge.insight.reference.differences import Measure, Pairing
from hookbridge.insight.reference.recording_files import norm


def suspects_of(pairing: Pairing, first: Measure) -> list[str]:
    """What usually makes such a first difference, the likeliest first."""
    by_layer: dict[str, Callable[[Pairing, Measure], Iterator[str]]] = {
        "data": _data,
        "initial weights": _initial,
        "forward": _forward,
        "gradients": _gradients,
        "update": _update,
        "state": _state,
    }
    return list(by_layer[first.layer](pairing, first))


def _close(a: Any, b: Any) -> bool:
    return a.shape == b.shape and bool(np.allclose(a, b, 1e-4, 1e-7))


def _data(pairing: Pairing, first: Measure) -> Iterator[str]:
    """What may have made two batches differ."""
    mine = pairing.ours.steps[first.step - 1].arrays("batch")
    other = pairing.theirs.steps[first.step - 1].arrays("batch")
    a = mine[first.name]
    b = next((v for v in other.values() if v.shape == a.shape), None)
    b = other.get(first.name, b)
    if b is None or a.shape != b.shape:
        yield "another shape: another batch size, or channels first for channels last"
        return
    if a.dtype.kind not in "SU":
        if _close(np.sort(a, axis=0), np.sort(b, axis=0)):
            yield "the same examples in another order: shuffled, or read otherwise"
        for shift in (1, -1):
            if len(a) > 3 and _close(a[1:-1], np.roll(b, shift, axis=0)[1:-1]):
                yield f"shifted by one example: `{first.name}` is not that of its row"
            if _close(a, b + shift):
                yield f"`{first.name}` is {shift:+d} off: counted from 0 or from 1"
        ratio = _ratio([(norm(a), norm(b))])
        if ratio is not None and _close(a * ratio, b):
            yield f"scaled by {ratio:.4g}: normalised in one of the two"
    for step in pairing.ours.steps:
        held = step.arrays("batch").get(first.name)
        if held is not None and step.number != first.step and _same(held, b):
            yield f"it is the batch of step {step.number}: another order of batches"
    yield "data that is read, shuffled or prepared otherwise; `hb.replay` gives it"


def _same(a: Any, b: Any) -> bool:
    return a.shape == b.shape and bool(np.all(a == b))


def _initial(pairing: Pairing, first: Measure) -> Iterator[str]:
    a = pairing.ours.initial[first.name]
    b = pairing.theirs.initial[pairing.variables.pairs[first.name]]
    if a.ndim > 1 and _close(a.T, b):
        yield "a transposed kernel: [in, out] of TensorFlow, [out, in] of PyTorch"
    elif sorted(a.shape) == sorted(b.shape) and a.shape != b.shape:
        yield "another order of axes: TensorFlow has the output last"
    yield "another initializer or seed; `hb.replay(...).weights` has the initial ones"


def _forward(pairing: Pairing, first: Measure) -> Iterator[str]:
    """What may have made two losses or outputs differ."""
    yield from _left_out(pairing)
    steps = pairing.ours.steps[first.step - 1], pairing.theirs.steps[first.step - 1]
    mine, other = steps[0].loss or math.nan, steps[1].loss or math.nan
    ratio = other / mine if mine else math.nan
    sizes = {size for shape, _ in steps[0].line["batch"].values() for size in shape}
    for factor in sizes - {1}:
        if any(math.isclose(ratio, r, rel_tol=0.05) for r in (factor, 1 / factor)):
            yield f"a sum for a mean: {ratio:.4g} times the loss, of a {factor}"
    held = pairing.ours.initial
    squares = sum(norm(held[n]) ** 2 for n in _weights(pairing) if held[n].ndim > 1)
    if first.step == 1 and squares:
        rate = 2 * (mine - other) / squares
        if rate and _is_round(abs(rate)) and _explains(pairing, rate):
            who = "port" if rate > 0 else "reference"
            yield (
                f"no l2 in the loss of the {who}, or less: {abs(rate):.2g} / 2 times "
                "the squares"
            )
    drawn = [
        who
        for who, each in (("reference", pairing.ours), ("port", pairing.theirs))
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


def _explains(pairing: Pairing, l2: float) -> bool:
    """Whether first gradients, where they are recorded, differ by that much l2."""
    parts = [r.steps[0].arrays("gradients") for r in (pairing.ours, pairing.theirs)]
    pairs = pairing.variables.pairs
    return all(
        np.allclose(parts[0][n] - parts[1][pairs[n]], l2 * value, 0.1, 0.02 * abs(l2))
        for n, value in pairing.ours.initial.items()
        if value.ndim > 1 and n in parts[0] and pairs.get(n) in parts[1]
    )


def _is_round(number: float) -> bool:
    """Whether a number has one digit such as 1, 2 or 5."""
    digit = number / 10.0 ** math.floor(math.log10(number))
    return any(math.isclose(digit, d, rel_tol=5e-3) for d in (1, 2, 2.5, 5, 10))


def _weights(pairing: Pairing) -> list[str]:
    return list(pairing.ours.shapes("weight"))


def _gradients(pairing: Pairing, first: Measure) -> Iterator[str]:
    ratio = _ratio(_norms(pairing, first.step, "gradient_norms", "weight"))
    if ratio is not None:
        yield (
            f"all gradients are {ratio:.4g} times as large: a sum for a mean, over "
            "examples or over replicas"
        )
    yield "l2 in the loss of one and in the optimizer of the other"
    yield "a part that is stopped, or trained, in one of the two; clipping before it"


def _update(pairing: Pairing, first: Measure) -> Iterator[str]:
    """What may have made the same gradients move variables differently."""
    step = first.step - 1
    steps = pairing.ours.steps[step], pairing.theirs.steps[step]
    if first.name == "learning_rate":
        a, b = (each.learning_rate for each in steps)
        yield f"the rate is {a:.6g} in the reference and {b:.6g} in the port"
        if step:
            yield "a schedule by epoch for one by step, or another count of its steps"
        return
    for name, a, b in pairing.settings():
        if not math.isclose(a, b, rel_tol=1e-6):
            yield f"{name} is {a:.6g} in the reference and {b:.6g} in the port"
    if first.name not in pairing.variables.pairs:
        return
    yield from _of_variable(pairing, first)
    pairs = _norms(pairing, first.step, "change_norms", "weight")
    ratio = _ratio(pairs)
    if ratio is not None:
        yield f"all weights move {ratio:.4g} times as far: the rate or its schedule"
    raw, applied = (steps[0].line[key] for key in ("gradient_norms", "applied_norms"))
    parts = [(raw[n], applied[n]) for n in applied if raw.get(n) and applied[n]]
    if parts and any(not math.isclose(a, b, rel_tol=1e-6) for a, b in parts):
        kind = "each by its own" if _ratio(parts) is None else "by their global norm"
        yield f"clipping: the reference clips its gradients, {kind}"
    else:
        yield "clipping in one of the two: by value, by norm, by global norm"
    yield "weight decay: before or after the update, times the rate or not"
    yield "an optimizer's setting: Adam's epsilon, momentum, Nesterov, its own slots"


def _of_variable(pairing: Pairing, first: Measure) -> Iterator[str]:
    """What concerns one variable, whatever the optimizer does to the others."""
    names = first.name, pairing.variables.pairs[first.name]
    lines = [each.steps[first.step - 1].line for each in (pairing.ours, pairing.theirs)]
    moves = [line["change_norms"][n] for line, n in zip(lines, names, strict=True)]
    for who, move in zip(("reference", "port"), moves, strict=True):
        if not move and any(moves):
            yield f"`{first.name}` does not move in the {who}: frozen, or left out"
    if any(n in line.get("of_rows", ()) for line, n in zip(lines, names, strict=True)):
        yield (
            "rows that a batch has twice: TensorFlow 1 and Keras 2 add up their "
            "gradients before Adam squares them, Keras 3 squares each of them"
        )


def _state(pairing: Pairing, first: Measure) -> Iterator[str]:
    """What may have made other state than the weights differ."""
    kind = pairing.ours.variables[first.name]["kind"]
    if kind == "counter":
        yield "the global step counts something else: two updates, or epochs"
        return
    ratio = _ratio(_norms(pairing, first.step, "change_norms", "state"))
    if ratio is not None:
        yield f"all move {ratio:.4g} times as far: the momentum of BatchNormalization"
    yield "the momentum of BatchNormalization; PyTorch's is 1 less TensorFlow's"
    yield "PyTorch's moving variance is that of a sample, n / (n - 1)"
    yield "moving averages that are not updated: UPDATE_OPS, or `training=False`"


def _norms(
    pairing: Pairing, step: int, key: str, kind: str
) -> list[tuple[float, float]]:
    """`(norm in the reference, norm in the port)` of each pair of a kind."""
    lines = [each.steps[step - 1].line[key] for each in (pairing.ours, pairing.theirs)]
    return [
        (lines[0][name], lines[1][other])
        for name, other in pairing.variables.pairs.items()
        if pairing.ours.variables[name]["kind"] == kind
        and lines[0].get(name)
        and lines[1].get(other)
    ]


def _ratio(pairs: list[tuple[float, float]]) -> float | None:
    """The ratio that all pairs have; None if they have none, or are equal."""
    ratios = [b / a for a, b in pairs if a]
    if not ratios or max(ratios) - min(ratios) > 0.01 * max(map(abs, ratios)):
        return None
    middle = float(np.median(ratios))
    return None if math.isclose(middle, 1.0, rel_tol=1e-3) else middle
