"""What two recordings have of their first updates, as vectors."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from hookbridge.reference.causes.recorded_clipping import scales_of
from hookbridge.reference.causes.update_rules import Course
from hookbridge.reference.recordings.array_norms import norm, wide
from hookbridge.reference.recordings.differences import Pairing
from hookbridge.reference.recordings.measures import finite
from hookbridge.reference.recordings.recording_files import RecordedStep, Recording

# Of a large variable only some elements are looked at.
_ELEMENTS = 4096


class Updates(NamedTuple):
    """The first updates of both recordings.

    Attributes:
      reference: the reference's course.
      port: the port's course.
      names: recorded names of the variables, in the order of their numbers.
      clear: which elements have a gradient that is more than rounding.
      sizes: for each element, how large a difference of its move is one whole part.
      steps: how many steps both have whole.
      own_gradients: whether the port's gradients are its own.
      next_rate: the reference's rate in the step after these.
    """

    reference: Course
    port: Course
    names: list[str]
    clear: Any
    sizes: Any
    steps: int
    own_gradients: bool
    next_rate: float

    def scaled(self, moves: Any) -> Any:
        """Return the clear elements of moves, each as a part of its usual move."""
        return (moves / self.sizes)[:, self.clear]


def updates_of(pairing: Pairing, until: int) -> Updates | None:
    """Return the updates that both have recorded whole, from the first step on.

    Where the port has no gradients, those of the reference serve as long as nothing
    differs: up to step `until`.
    """
    has_gradients = bool(pairing.port.steps[0].arrays("gradients"))
    names = [name for name in _moving(pairing) if name not in pairing.noisy]
    steps = _whole_steps(pairing, names, has_gradients)
    if not has_gradients:
        steps = min(steps, until)
    if not names or not steps:
        return None
    chosen = {name: _elements(pairing.reference.initial[name]) for name in names}
    reference = _course(pairing, names, chosen, steps, of_port=False, own=True)
    port = _course(pairing, names, chosen, steps, of_port=True, own=has_gradients)
    sizes = np.stack(
        [
            np.sqrt((reference.moves[:, reference.owner == n] ** 2).mean(1))
            for n in range(len(names))
        ]
    ).T
    sizes = np.where(sizes > 0, sizes, sizes.max(initial=1.0))[:, reference.owner]
    after = pairing.reference.steps[steps : steps + 1]
    rate = after[0].learning_rate if after else None
    return Updates(
        reference,
        port,
        names,
        _clear(pairing, names, chosen),
        sizes,
        steps,
        has_gradients,
        float(reference.rates[-1]) if rate is None else rate,
    )


def _moving(pairing: Pairing) -> list[str]:
    """Return the weights of both with a gradient."""
    reference = pairing.reference.steps[0].arrays("gradients")
    port = pairing.port.steps[0].arrays("gradients")
    return [
        name
        for name, partner in pairing.variables.pairs.items()
        if pairing.reference.variables[name]["kind"] == "weight"
        and name in reference
        and (not port or partner in port)
        and pairing.reference.initial[name].shape == pairing.port.initial[partner].shape
    ]


def _whole_steps(pairing: Pairing, names: list[str], own: bool) -> int:
    """Return how many steps from the first on both have recorded whole."""
    count = 0
    for steps in pairing.steps:
        for index, step in enumerate(steps):
            keys = [pairing.variables.pairs[n] if index else n for n in names]
            arrays = step.held
            parts = ["variables"] + (["gradients"] if own or not index else [])
            if not all(f"{part}/{key}" in arrays for part in parts for key in keys):
                return count
        count += 1
    return count


def _elements(value: Any) -> Any:
    """Return the elements of a variable that are looked at."""
    if value.size <= _ELEMENTS:
        return np.arange(value.size)
    return np.random.RandomState(0).choice(value.size, _ELEMENTS, replace=False)


def _course(
    pairing: Pairing,
    names: list[str],
    chosen: dict[str, Any],
    count: int,
    *,
    of_port: bool,
    own: bool,
) -> Course:
    """Return the course of a recording, with the reference's gradients unless `own`."""
    recording: Recording = pairing.port if of_port else pairing.reference
    pairs = pairing.variables.pairs
    keys = {name: pairs[name] if of_port else name for name in names}
    places: list[Any] = [recording.initial]
    gradients, norms, wholes, rates, scales = [], [], [], [], []
    for number in range(count):
        step = recording.steps[number]
        source = step if own else pairing.reference.steps[number]
        arrays = source.arrays("gradients")
        parts = {n: arrays[keys[n] if own else n] for n in names}
        gradients.append(_vector(parts, chosen))
        norms.append([norm(value) for value in parts.values()])
        wholes.append(math.hypot(*map(finite, source.line["gradient_norms"].values())))
        places.append(step.arrays("variables"))
        rates.append(_rate(step, pairing.reference.steps[number]))
        scales.append(scales_of(pairing.reference.steps[number], names))
    weights = np.stack(
        [_vector({n: values[keys[n]] for n in names}, chosen) for values in places]
    )
    owner = np.concatenate(
        [np.full(len(chosen[name]), n) for n, name in enumerate(names)]
    )
    return Course(
        np.stack(gradients),
        weights[:-1],
        np.diff(weights, axis=0),
        np.array(rates),
        np.array(norms),
        np.array(wholes),
        np.array(scales),
        owner,
    )


def _rate(step: RecordedStep, reference_step: RecordedStep) -> float:
    """Return the rate of a step, else the rate of the reference's, else 1."""
    rate = step.learning_rate
    if rate is None:
        rate = reference_step.learning_rate
    return 1.0 if rate is None else rate


def _vector(parts: dict[str, Any], chosen: dict[str, Any]) -> Any:
    return np.concatenate([wide(v).ravel()[chosen[n]] for n, v in parts.items()])


def _clear(pairing: Pairing, names: list[str], chosen: dict[str, Any]) -> Any:
    """Return the elements whose first gradient is more than rounding."""
    parts = []
    for name in names:
        clear = pairing.clear_of(name)
        whole = np.ones(pairing.reference.initial[name].shape, bool)
        parts.append((whole if clear is None else clear).ravel()[chosen[name]])
    return np.concatenate(parts)
