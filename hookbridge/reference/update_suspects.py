"""The usual causes of a difference in gradients, updates and other state."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from hookbridge.reference.differences import Pairing
from hookbridge.reference.measures import Measure
from hookbridge.reference.recording_files import RecordedStep


def gradients(pairing: Pairing, first: Measure) -> Iterator[str]:
    """What may have made two gradients differ."""
    ratio = ratio_of(_norms(pairing, first.step, "gradient_norms", "weight"))
    if ratio is not None:
        yield (
            f"all gradients are {ratio:.4g} times as large: a sum for a mean, over "
            "examples or over replicas"
        )
    yield "l2 in the loss of one and in the optimizer of the other"
    yield "a part that is stopped, or trained, in one of the two; clipping before it"


def update(pairing: Pairing, first: Measure) -> Iterator[str]:
    """What may have made the same gradients move variables differently."""
    step = first.step - 1
    steps = pairing.reference.steps[step], pairing.port.steps[step]
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
    yield from _suspects_of_variable(pairing, first)
    pairs = _norms(pairing, first.step, "change_norms", "weight")
    ratio = ratio_of(pairs)
    if ratio is not None:
        yield f"all weights move {ratio:.4g} times as far: the rate or its schedule"
    yield _clipping(steps[0])
    yield "weight decay: before or after the update, times the rate or not"
    yield "an optimizer's setting: Adam's epsilon, momentum, Nesterov, its own slots"


def _clipping(step: RecordedStep) -> str:
    """Whether the reference clips, by the gradients before and after it."""
    raw, applied = (step.line[key] for key in ("gradient_norms", "applied_norms"))
    parts = [(raw[n], applied[n]) for n in applied if raw.get(n) and applied[n]]
    if any(not math.isclose(a, b, rel_tol=1e-6) for a, b in parts):
        kind = "each by its own" if ratio_of(parts) is None else "by their global norm"
        return f"clipping: the reference clips its gradients, {kind}"
    return "clipping in one of the two: by value, by norm, by global norm"


def _suspects_of_variable(pairing: Pairing, first: Measure) -> Iterator[str]:
    """What concerns one variable, whatever the optimizer does to the others."""
    names = first.name, pairing.variables.pairs[first.name]
    lines = [
        each.steps[first.step - 1].line for each in (pairing.reference, pairing.port)
    ]
    moves = [line["change_norms"][n] for line, n in zip(lines, names, strict=True)]
    for who, move in zip(("reference", "port"), moves, strict=True):
        if not move and any(moves):
            yield f"`{first.name}` does not move in the {who}: frozen, or left out"
    for who, line, name in zip(("reference", "port"), lines, names, strict=True):
        if name not in line["gradient_norms"]:
            yield f"its gradient, which is not recorded in the {who}"
    if any(n in line.get("of_rows", ()) for line, n in zip(lines, names, strict=True)):
        yield (
            "rows that a batch has twice: TensorFlow 1 and Keras 2 add up their "
            "gradients before Adam squares them, Keras 3 squares each of them"
        )


def state(pairing: Pairing, first: Measure) -> Iterator[str]:
    """What may have made other state than the weights differ."""
    kind = pairing.reference.variables[first.name]["kind"]
    if kind == "counter":
        yield "the global step counts something else: two updates, or epochs"
        return
    ratio = ratio_of(_norms(pairing, first.step, "change_norms", "state"))
    if ratio is not None:
        yield f"all move {ratio:.4g} times as far: the momentum of BatchNormalization"
    yield "the momentum of BatchNormalization; PyTorch's is 1 less TensorFlow's"
    yield "PyTorch's moving variance is that of a sample, n / (n - 1)"
    yield "moving averages that are not updated: UPDATE_OPS, or `training=False`"


def _norms(
    pairing: Pairing, step: int, key: str, kind: str
) -> list[tuple[float, float]]:
    """`(norm in the reference, norm in the port)` of each pair of a kind."""
    lines = [
        each.steps[step - 1].line[key] for each in (pairing.reference, pairing.port)
    ]
    return [
        (lines[0][name], lines[1][other])
        for name, other in pairing.variables.pairs.items()
        if pairing.reference.variables[name]["kind"] == kind
        and lines[0].get(name)
        and lines[1].get(other)
    ]


def ratio_of(pairs: list[tuple[float, float]]) -> float | None:
    """The ratio that all pairs have; None if they have none, or are equal."""
    ratios = [b / a for a, b in pairs if a]
    if not ratios or not all(map(math.isfinite, ratios)):
        return None
    if max(ratios) - min(ratios) > 0.01 * max(map(abs, ratios)):
        return None
    middle = float(np.median(ratios))
    return None if math.isclose(middle, 1.0, rel_tol=1e-3) else middle
