"""The causes of a first difference, those that explain most first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from hookbridge.reference.causes.adam_epsilon import EpsilonCause, epsilon_of
from hookbridge.reference.causes.cause import Cause, rank
from hookbridge.reference.causes.causes_before_training import (
    data_causes,
    initial_causes,
)
from hookbridge.reference.causes.causes_in_gradients import gradient_causes
from hookbridge.reference.causes.causes_in_loss import loss_causes
from hookbridge.reference.causes.causes_of_state import state_causes
from hookbridge.reference.causes.causes_of_updates import decay_instead, update_causes
from hookbridge.reference.causes.first_step import StepEvidence
from hookbridge.reference.causes.known_rule import rules_of
from hookbridge.reference.causes.schedules import rate_causes
from hookbridge.reference.causes.variations import variation_causes
from hookbridge.reference.recordings.differences import Pairing
from hookbridge.reference.recordings.measures import Measure
from hookbridge.reference.recordings.recording_files import RecordedStep, Recording


class DifferenceCauses(NamedTuple):
    """What explains a first difference.

    Attributes:
      causes: the causes, those that explain most first.
      epsilon: Adam's epsilon, where it explains the difference.
    """

    causes: list[Cause]
    epsilon: EpsilonCause | None = None


def explanation_of(pairing: Pairing, first: Measure) -> DifferenceCauses:
    """Try every cause that a difference of this layer may have."""
    if first.layer == "update":
        return _of_update(pairing, first)
    by_layer: dict[str, Callable[[Pairing, Measure], Iterator[Cause]]] = {
        "data": data_causes,
        "initial weights": initial_causes,
        "forward": _forward,
        "gradients": _forward,
        "state": state_causes,
    }
    not_finite = list(_not_finite(pairing, first))
    if not_finite:
        return DifferenceCauses(not_finite)
    causes = rank(by_layer[first.layer](pairing, first))
    if causes and causes[0].name == "l2":
        causes[0] = _with_decay(pairing, causes[0])
    return DifferenceCauses(causes)


def _with_decay(pairing: Pairing, l2: Cause) -> Cause:
    """Return the cause that it is where the optimizer has what the loss lacks."""
    decay = decay_instead(pairing)
    if decay is None:
        return l2
    return replace(l2, name="weight decay for l2", text=f"{l2.text}; {decay.text}")


def _forward(pairing: Pairing, first: Measure) -> Iterator[Cause]:
    """Yield what may have made losses or gradients differ."""
    yield from _left_out(pairing, first)
    evidence = StepEvidence(pairing, first.step)
    yield from loss_causes(evidence)
    yield from gradient_causes(evidence)
    yield from variation_causes(evidence)


def _left_out(pairing: Pairing, first: Measure) -> Iterator[Cause]:
    """Yield weights and parts of the batch that one of the two does not have."""
    alone = pairing.alone()
    for who, names in alone.items():
        # Where both have some, they may belong together, which a note says.
        if names and not all(alone.values()):
            initial = dict(pairing.sides)[who].initial
            # A bias of zeros adds nothing to the first step.
            if first.step == 1 and not any(np.any(initial[name]) for name in names):
                continue
            text = f"{', '.join(names)}: in the {who} alone, a layer or a bias"
            yield Cause("left out", text)
    if pairing.batch.pairs and pairing.batch.unmatched:
        text = f"the port does not get `{'`, `'.join(pairing.batch.unmatched)}`"
        yield Cause("left out", text)


def _of_update(pairing: Pairing, first: Measure) -> DifferenceCauses:
    """Return what moves weights in another way, after the same gradients."""
    facts = [*_not_finite(pairing, first), *rate_causes(pairing, first)]
    facts += _facts_of_update(pairing, first)
    if facts:
        return DifferenceCauses(rank(facts))
    unknown = [*_not_recorded(pairing, first), *_of_rows(pairing, first)]
    rules = rules_of(pairing, first.step)
    if rules is None:
        return DifferenceCauses(unknown)
    causes = rank([*update_causes(rules), *unknown])
    epsilon = epsilon_of(rules)
    if epsilon is not None:
        causes = rank([*causes, epsilon.cause])
        if causes[0] != epsilon.cause:
            epsilon = None
    return DifferenceCauses(causes, epsilon)


def _facts_of_update(pairing: Pairing, first: Measure) -> Iterator[Cause]:
    """Yield causes that the recordings state: settings, and of one variable."""
    for name, a, b in pairing.settings():
        if name == first.name:
            text = f"{name} is {a:.6g} in the reference and {b:.6g} in the port"
            yield Cause(name, text)
    if first.name not in pairing.variables.pairs:
        return
    moves = pairing.moves(first)
    for who, move in zip(("reference", "port"), moves, strict=True):
        if not move and any(moves):
            text = f"`{first.name}` does not move in the {who}: frozen, or left out"
            yield Cause("frozen", text)


def _of_rows(pairing: Pairing, first: Measure) -> Iterator[Cause]:
    """Yield that Keras 3's `fit` squares each gradient of a row that occurs twice."""
    line = pairing.reference.steps[first.step - 1].line
    is_of_keras = pairing.port.header.get("host") == "fit"
    if is_of_keras and first.name in line.get("of_rows", ()):
        yield Cause(
            "rows",
            "rows that a batch has twice: TensorFlow 1 and Keras 2 add up their "
            "gradients before Adam squares them, Keras 3 squares each of them",
        )


def _not_recorded(pairing: Pairing, first: Measure) -> Iterator[Cause]:
    """Yield gradients of the variable that are not recorded, and may be the cause."""
    names = first.name, pairing.variables.pairs[first.name]
    for (who, recording), name in zip(pairing.sides, names, strict=True):
        if name not in recording.steps[first.step - 1].line["gradient_norms"]:
            text = f"the gradient of `{first.name}`, which the {who} has not recorded"
            yield Cause("no gradient", text)


def _not_finite(pairing: Pairing, first: Measure) -> Iterator[Cause]:
    """Yield what is NaN or infinite in one of the two, or in another way."""
    kinds = [_kind_of(value) for value in _both_values(pairing, first)]
    if kinds[0] == kinds[1]:
        return
    subject = f"numbers of `{first.name}` that are"
    if first.layer == "forward":
        subject = "a loss that is"
    text = f"{subject} not finite: {kinds[0]} in the reference, {kinds[1]} in the port"
    yield Cause("not finite", text)


def _both_values(pairing: Pairing, first: Measure) -> list[Any]:
    """Return the two values of a difference; `()` for one that is not recorded."""
    values: list[Any] = []
    for index, (_, recording) in enumerate(pairing.sides):
        step = recording.steps[first.step - 1]
        parts = pairing.batch if first.layer == "data" else pairing.variables
        name = parts.pairs.get(first.name, first.name) if index else first.name
        values.append(_values(recording, step, first.layer).get(name, ()))
    return values


def _values(recording: Recording, step: RecordedStep, layer: str) -> Mapping[str, Any]:
    """Return what a recording has of a layer in a step, by name."""
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


def _kind_of(value: object) -> str:
    """Return in which way an array or a number is not finite."""
    array = np.asarray(value)
    if array.dtype.kind not in "fc" or np.all(np.isfinite(array)):
        return "finite"
    if np.any(np.isnan(array)):
        return "NaN"
    return "-inf" if np.all(array[np.isinf(array)] < 0) else "inf"
