"""The differences of two recordings, layer by layer and step by step."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from hookbridge.reference.recordings.array_norms import wide
from hookbridge.reference.recordings.measures import (
    LAYERS,
    Measure,
    apart,
    beyond_rounding,
    distance,
    finite,
    gap,
    norm_of_finite,
    relative,
)
from hookbridge.reference.recordings.recording_files import (
    CHANGES_GRADIENTS,
    RecordedStep,
    Recording,
    as_number,
)
from hookbridge.reference.recordings.variable_matching import Matching, match

# What may differ of the first loss, in units of the last place of the numbers' type.
_UNITS = 200
# A gradient that is this part of all gradients, or less, is nothing but rounding; so is
# an element that is this part of the largest one. Adam makes whole steps of both.
_NOISE, _NOISY_ELEMENT = 1e-5, 1e-4
# Whole variables after a later step have more in them than one update.
_SEVERAL_UPDATES = 5.0

# Names of TF1's settings in Keras.
_IN_KERAS = {"beta1": "beta_1", "beta2": "beta_2", "decay": "rho"}


class Pairing:
    """Two recordings, and which of their parts belong together."""

    def __init__(
        self,
        reference: Recording,
        port: Recording,
        names: Mapping[str, str],
        tolerance: float | None,
    ) -> None:
        self.reference: Recording = reference
        self.port: Recording = port
        kinds = ("weight", "state", "counter")
        reference_shapes, port_shapes = reference.shapes(*kinds), port.shapes(*kinds)
        batches = [_batch_shapes(recording) for recording in (reference, port)]
        of_batch = {n: c for n, c in names.items() if n in batches[0]}
        of_variables = {n: c for n, c in names.items() if n not in batches[0]}
        self.variables: Matching = match(
            reference_shapes, port_shapes, of_variables, any_order=True
        )
        self.batch: Matching = match(batches[0], batches[1], of_batch)
        self.steps: list[tuple[RecordedStep, RecordedStep]] = list(
            zip(reference.steps, port.steps, strict=False)
        )
        self._initial = reference.initial, port.initial
        every = [v for r in (reference, port) for v in r.variables.values()]
        types = {np.dtype(v["dtype"]) for v in every if v["kind"] == "weight"}
        real = [t for t in types if t.kind == "f"]
        self._unit = max((float(np.finfo(t).eps) for t in real), default=1.2e-7)
        self._loss_tolerance = tolerance or _UNITS * self._unit
        self.noisy: frozenset[str] = self._noise()

    @property
    def sides(self) -> tuple[tuple[str, Recording], ...]:
        """Both recordings, each with what it is called."""
        return ("reference", self.reference), ("port", self.port)

    def _noise(self) -> frozenset[str]:
        """Return weights whose first gradient is rounding: Adam moves them by chance.

        The reference tells it, or the port where the reference has no gradients.
        """
        of_reference = {name: name for name in self.variables.pairs}
        of_port = {partner: name for name, partner in self.variables.pairs.items()}
        for recording, names in ((self.reference, of_reference), (self.port, of_port)):
            norms = recording.steps[0].line["gradient_norms"]
            if norms:
                whole = math.hypot(*map(finite, norms.values()))
                small = (n for n, v in norms.items() if v and v <= _NOISE * whole)
                return frozenset(names[n] for n in small if n in names)
        return frozenset()

    def clear_of(self, name: str) -> Any:
        """Return which elements of a weight have a gradient beyond rounding."""
        recorded = ((self.reference, name), (self.port, self.variables.pairs[name]))
        for recording, key in recorded:
            gradient = recording.steps[0].arrays("gradients").get(key)
            if gradient is not None and gradient.size:
                size = np.abs(gradient)
                least = _NOISY_ELEMENT * size[np.isfinite(size)].max(initial=0.0)
                return (size > least) | ~np.isfinite(size)
        return None

    def tolerance(self, layer: str, step: int) -> float:
        """Return the tolerance of a layer in a step.

        Rounding adds up over the steps.
        """
        grows = layer not in ("data", "initial weights")
        return self._loss_tolerance * LAYERS[layer] * (step if grows else 1)

    def measures(self) -> dict[str, list[Measure]]:
        """Return all differences, by layer, in the order of steps."""
        by_layer: dict[str, list[Measure]] = {layer: [] for layer in LAYERS}
        for measure in self._all():
            by_layer[measure.layer].append(measure)
        return by_layer

    def _all(self) -> Iterator[Measure]:
        """Yield every measure: of initial weights and settings, then of each step."""
        for name, partner in self.variables.pairs.items():
            if self.reference.variables[name]["kind"] != "counter":
                a, b = self._initial[0][name], self._initial[1][partner]
                yield self._measure("initial weights", 1, name, distance(a, b))
        # The number of an epsilon depends on where it is added.
        for name, a, b in self.settings():
            if name != "epsilon":
                yield self._exact(name, 1, a, b)
        for reference_step, port_step in self.steps:
            yield from self._data(reference_step, port_step)
            yield from self._forward(reference_step, port_step)
            yield from self._gradients(reference_step, port_step)
            yield from self._moves(reference_step, port_step)

    def _measure(self, layer: str, step: int, name: str, difference: float) -> Measure:
        return Measure(layer, step, name, difference, self.tolerance(layer, step))

    def _exact(self, name: str, step: int, a: float, b: float) -> Measure:
        """Return a number of the optimizer, which is the same without rounding."""
        exact = self._loss_tolerance * LAYERS["initial weights"]
        return Measure("update", step, name, relative(a, b, abs(a)), exact)

    def settings(self) -> Iterator[tuple[str, float, float]]:
        """Yield the numbers that the optimizers of both are set to."""
        port = _settings(self.port)
        for name, number in _settings(self.reference).items():
            if name in port:
                yield name, number, port[name]

    def _data(
        self, reference_step: RecordedStep, port_step: RecordedStep
    ) -> Iterator[Measure]:
        reference_batch = reference_step.arrays("batch")
        port_batch = port_step.arrays("batch")
        for name, a, b in _of_both(self.batch, reference_batch, port_batch):
            yield self._measure("data", reference_step.number, name, distance(a, b))

    def _forward(
        self, reference_step: RecordedStep, port_step: RecordedStep
    ) -> Iterator[Measure]:
        """Yield how far the losses of a step are apart."""
        reference_loss, port_loss = reference_step.loss, port_step.loss
        if reference_loss is None or port_loss is None:
            return
        # A loss that has become small is compared as a part of the first one.
        size = max(
            abs(finite(reference_loss)),
            0.01 * abs(finite(self.reference.steps[0].loss)),
        )
        yield self._measure(
            "forward",
            reference_step.number,
            "loss",
            relative(reference_loss, port_loss, size),
        )

    def _gradients(
        self, reference_step: RecordedStep, port_step: RecordedStep
    ) -> Iterator[Measure]:
        """Yield how far the gradients of a step are apart, by arrays or by norms."""
        reference_norms = reference_step.line["gradient_norms"]
        port_norms = port_step.line["gradient_norms"]
        whole = [reference_step.arrays("gradients"), port_step.arrays("gradients")]
        floor = 1e-3 * math.hypot(*map(finite, reference_norms.values()))
        for name, a, b in _of_both(self.variables, reference_norms, port_norms):
            partner = self.variables.pairs[name]
            if name in whole[0] and partner in whole[1]:
                difference = distance(whole[0][name], whole[1][partner], floor)
            else:
                difference = relative(a, b, max(finite(a), floor))
            yield self._measure("gradients", reference_step.number, name, difference)

    def _moves(
        self, reference_step: RecordedStep, port_step: RecordedStep
    ) -> Iterator[Measure]:
        """Yield how far variables moved: since the start if whole, or in this step.

        What a variable's own rounding adds is not a difference, nor what moving
        averages take over from weights that move by chance.
        """
        step = reference_step.number
        rate, other_rate = reference_step.learning_rate, port_step.learning_rate
        if rate is not None and other_rate is not None:
            yield self._exact("learning_rate", step, rate, other_rate)
        moved = self._movement(0, reference_step), self._movement(1, port_step)
        reference_norms = reference_step.line["change_norms"]
        port_norms = port_step.line["change_norms"]
        chance = 0.0
        for name, a, b in _of_both(self.variables, reference_norms, port_norms):
            kind = self.reference.variables[name]["kind"]
            if name in self.noisy:
                chance += step * (finite(a) + finite(b))
                continue
            rounding = 4 * self._unit * finite(reference_step.line["norms"][name])
            if kind == "state":
                rounding += chance
            layer = "update" if kind == "weight" else "state"
            yield self._measure(
                layer, step, name, beyond_rounding(gap(a, b), a, rounding)
            )
            partner = self.variables.pairs[name]
            if name in moved[0] and partner in moved[1]:
                far = self._far(name, moved[0][name], moved[1][partner], rounding)
                far = far / _SEVERAL_UPDATES if step > 1 else far
                yield self._measure(layer, step, name, far)

    def _far(self, name: str, a: Any, b: Any, rounding: float) -> float:
        """Return how far two moves of a whole variable are apart, beyond rounding."""
        is_weight = self.reference.variables[name]["kind"] == "weight"
        clear = self.clear_of(name) if is_weight and a.shape == b.shape else None
        if clear is not None:
            a, b = a[clear], b[clear]
        return beyond_rounding(apart(a, b), norm_of_finite(a), rounding)

    def _movement(self, place: int, step: RecordedStep) -> dict[str, Any]:
        """Return the whole variables after a step, less what they were at the start."""
        initial = self._initial[place]
        with np.errstate(invalid="ignore"):
            return {
                name: wide(value) - wide(initial[name])
                for name, value in step.arrays("variables").items()
            }

    def moves(self, measure: Measure) -> list[float]:
        """Return how far the variable of a difference moves in its step, in both."""
        names = measure.name, self.variables.pairs[measure.name]
        steps = zip(self.steps[measure.step - 1], names, strict=True)
        return [step.line["change_norms"][name] for step, name in steps]

    def why_not(self, layer: str) -> str:
        """Return why nothing of a layer could be compared."""
        parts: dict[str, Callable[[Recording], Any]] = {
            "data": lambda r: r.steps[0].line["batch"],
            "forward": lambda r: r.steps[0].loss is not None,
            "gradients": lambda r: r.steps[0].line["gradient_norms"],
            "state": lambda r: r.shapes("state", "counter"),
            "initial weights": lambda r: r.shapes("weight"),
            "update": lambda r: r.shapes("weight"),
        }
        has_part = parts[layer]
        lacking = [who for who, recording in self.sides if not has_part(recording)]
        if not lacking:
            return "no name of one belongs to a name of the other"
        return f"not recorded in the {' and the '.join(lacking)}"

    def alone(self) -> dict[str, list[str]]:
        """Return the weights that one of the two has, and the other has not."""
        left = {
            "reference": self.variables.unmatched,
            "port": self.variables.unmatched_port,
        }
        return {
            who: [name for name in left[who] if name in recording.shapes("weight")]
            for who, recording in self.sides
        }

    def notes(self) -> Iterator[str]:
        """Yield what else to note, in addition to the differences."""
        counts = len(self.reference.steps), len(self.port.steps)
        if counts[0] != counts[1]:
            yield f"the reference has {counts[0]} steps, the port {counts[1]}"
        if self.noisy:
            yield (
                f"not judged, since their gradients are rounding: "
                f"{', '.join(sorted(self.noisy))}"
            )
        for who, recording in self.sides:
            if ops := recording.header.get("random_ops"):
                yield f"the {who} draws random numbers in its step: {', '.join(ops)}"
        yield from _not_exercised(self.reference)
        if all(alone := self.alone().values()):
            of_reference, of_port = (", ".join(names) for names in alone)
            yield (
                "not compared, since no name or shape tells a partner: "
                f"{of_reference} of the reference, {of_port} of the port; `names` does"
            )
        left = [n for n in self.batch.unmatched if self.batch.pairs]
        if left:
            yield f"parts of the batch that the port does not have: {', '.join(left)}"


def _of_both(
    parts: Matching, reference: Mapping[str, Any], port: Mapping[str, Any]
) -> Iterator[tuple[str, Any, Any]]:
    """Yield the names that both have a value of, with the two values."""
    for name, partner in parts.pairs.items():
        if name in reference and partner in port:
            yield name, reference[name], port[partner]


def _not_exercised(recording: Recording) -> Iterator[str]:
    """Yield what the reference has, and never did in the recorded steps."""
    if not recording.header.get(CHANGES_GRADIENTS):
        return
    for step in recording.steps:
        raw, applied = step.line["gradient_norms"], step.line["applied_norms"]
        names = raw.keys() & applied.keys()
        if any(relative(raw[n], applied[n], raw[n]) > 1e-5 for n in names):
            return
    yield (
        "clipping was not exercised: the reference clips or scales its gradients, and "
        f"changed none in its {len(recording.steps)} steps. Another limit in the port "
        "is not seen; record more steps to compare it"
    )


def _settings(recording: Recording) -> dict[str, float]:
    """Return the numbers of the one optimizer, by their names in Keras."""
    optimizers = recording.header.get("optimizer") or []
    if len(optimizers) != 1:
        return {}
    is_old = str(optimizers[0].get("class")).endswith("Optimizer")
    numbers = {name: as_number(value) for name, value in optimizers[0].items()}
    return {
        _IN_KERAS.get(name, name) if is_old else name: value
        for name, value in numbers.items()
        if value is not None
    }


def _batch_shapes(recording: Recording) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the first batch."""
    batch = recording.steps[0].line["batch"]
    return {name: tuple(shape) for name, (shape, _) in batch.items()}
