"""Where a port first differs from a recorded run, in the order of causes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from hookbridge import errors
from hookbridge.ground.arguments import amount, string_mapping
from hookbridge.ground.texts.counted import counted
from hookbridge.reference.causes.adam_epsilon import EpsilonCause
from hookbridge.reference.causes.cause import Cause
from hookbridge.reference.causes.ranked_causes import explanation_of
from hookbridge.reference.recordings.differences import Pairing
from hookbridge.reference.recordings.measures import LAYERS, Layer, Measure, status
from hookbridge.reference.recordings.recording_files import Recording
from hookbridge.reference.recordings.variable_matching import Matching

DRIFT = "drift"
_OF_DRIFT = (
    "a difference that was there before has grown: rounding, or a fault that is "
    "smaller than the tolerance; compare again with a smaller one"
)
_NO_CAUSE = "no cause that is known explains it"
_ADVICE = {
    "data": f"{_NO_CAUSE}; `hb.replay(...).batches` has the recorded batches",
    "initial weights": f"{_NO_CAUSE}; `hb.replay(...).weights` has the recorded ones",
}
# What another epsilon moves weights by adds up, and goes on through the model.
_EPSILON_SPREAD = 3.0


@dataclass(frozen=True)
class Comparison:
    """What `compare` returns; `print` shows it as lines.

    Attributes:
      reference: the recorded run.
      port: the port's.
      layers: what was compared, in the order of causes.
      first: the first difference; None if there is none.
      layer: the layer of the first difference, or "drift" for one that has grown.
      causes: what explains the difference, the cause that explains most first. A cause
        that explains less than 98 % is not among them.
      notes: what else to note, such as settings that differ.
      matching: which variable belongs to which.
    """

    reference: Recording
    port: Recording
    layers: list[Layer]
    first: Measure | None
    layer: str | None
    matching: Matching
    causes: list[Cause] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def is_same(self) -> bool:
        """Return whether nothing that was compared differs."""
        return self.first is None

    def __str__(self) -> str:
        lines = []
        for layer in self.layers:
            text = counted(len({m.step for m in layer.measures}), "step")
            if layer.first is not None:
                text = difference_in_words(layer.first)
            lines.append(
                f"{layer.name:<16} {status(layer):<20} {layer.why_not or text}"
            )
        if self.first is None:
            lines.append("Nothing that was compared differs.")
        else:
            lines.append(
                f"First difference: {self.layer}, {difference_in_words(self.first)}"
            )
            lines += [f"  cause: {cause}" for cause in self.causes]
            if not self.causes:
                lines.append(f"  {_ADVICE.get(str(self.layer), _NO_CAUSE)}")
        lines += [f"note: {note}" for note in self.notes]
        for who, left in (
            ("reference", self.matching.unmatched),
            ("port", self.matching.unmatched_port),
        ):
            if left:
                lines.append(f"in the {who} alone: {', '.join(left)}")
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """Return the comparison for JSON; a number that is not finite is None."""
        first = None if self.first is None else self.first._asdict()
        if first and not math.isfinite(first["difference"]):
            first["difference"] = None
        return {
            "same": self.is_same,
            "layer": self.layer,
            "first": first,
            "causes": [
                {"name": cause.name, "text": cause.text, "explains": cause.explains}
                for cause in self.causes
            ],
            "notes": self.notes,
            "layers": [
                {"name": layer.name, "status": status(layer), "why_not": layer.why_not}
                for layer in self.layers
            ],
            "unmatched": list(self.matching.unmatched),
            "unmatched_port": list(self.matching.unmatched_port),
        }


def compare(
    reference: object,
    port: object,
    *,
    names: Mapping[str, str] | None = None,
    tolerance: float | None = None,
) -> Comparison:
    """Compare two recordings, step by step, in the order of causes.

        print(hb.compare("reference/", "port/"))

    TensorFlow is not imported.

    Args:
      reference: the folder of the reference run.
      port: the folder of the port's recording.
      names: `{recorded name: name in the port}` of variables and parts of batches
        whose names and shapes do not tell.
      tolerance: how far the first loss may be off, as a part of it; the other
        tolerances are multiples of it. None takes the tolerance of the numbers' type.

    Returns:
      What differs first, with the causes that explain it.

    Raises:
      errors.InvalidArgumentError: a folder has no recording, or one without steps, a
        name does not exist, or the tolerance is not a number above 0.
    """
    recorded, ported = Recording(reference), Recording(port)
    for name, recording in (("reference", recorded), ("port", ported)):
        if not recording.steps:
            raise errors.InvalidArgumentError(
                f"Received {name}={str(recording.folder)!r}, a recording without "
                "steps; expected at least one. Its training made no step."
            )
    chosen = string_mapping("names", names)
    if tolerance is not None:
        amount("tolerance", tolerance)
    pairing = Pairing(recorded, ported, chosen, tolerance)
    result, epsilon = _judge(pairing, pairing.measures())
    notes = list(pairing.notes())
    if epsilon is not None and epsilon.is_of_framework and result.first is not None:
        # What follows from another epsilon is not another difference.
        result, _ = _beyond_epsilon(pairing, result.first, epsilon)
        notes.append(f"the same except where Adam adds epsilon: {epsilon.cause}")
    return replace(result, notes=notes)


# A comparison without its notes, and Adam's epsilon where it explains the difference.
_Judged: TypeAlias = tuple[Comparison, EpsilonCause | None]


def _judge(pairing: Pairing, measures: Mapping[str, list[Measure]]) -> _Judged:
    """Compare by some measures; find the first difference and its causes."""
    layers = [
        Layer(name, measured, "" if measured else pairing.why_not(name))
        for name, measured in measures.items()
    ]
    places = list(LAYERS)
    firsts = [layer.first for layer in layers if layer.first]
    first = min(firsts, key=lambda m: (m.step, places.index(m.layer)), default=None)
    both, matching = (pairing.reference, pairing.port), pairing.variables
    if first is None:
        return Comparison(*both, layers, None, None, matching), None
    layer = _layer_of(first, layers)
    causes, epsilon = explanation_of(pairing, first)
    if layer == DRIFT and not causes:
        causes = [Cause(DRIFT, _OF_DRIFT)]
    return Comparison(*both, layers, first, layer, matching, causes), epsilon


def _beyond_epsilon(pairing: Pairing, first: Measure, epsilon: EpsilonCause) -> _Judged:
    """Judge again, with the tolerance of what an epsilon of the framework makes."""
    wider = _EPSILON_SPREAD * max(first.difference, epsilon.size)
    moved = {"loss", *pairing.variables.pairs}
    early = ("data", "initial weights")

    def widened(measure: Measure) -> Measure:
        if measure.layer in early or measure.name not in moved:
            return measure
        return measure._replace(tolerance=measure.tolerance + wider * measure.step)

    measures = pairing.measures().items()
    return _judge(pairing, {layer: [*map(widened, m)] for layer, m in measures})


def _layer_of(first: Measure, layers: list[Layer]) -> str:
    """Return the layer of a difference; it is a drift if it was growing before."""
    same = (m for layer in layers for m in layer.measures if m.name == first.name)
    before = [m for m in same if m.layer == first.layer and m.step == first.step - 1]
    grows = any(m.difference > 0.1 * m.tolerance for m in before)
    grows = grows and math.isfinite(first.difference)
    return DRIFT if grows and first.layer != "data" else first.layer


def difference_in_words(measure: Measure) -> str:
    """Return a difference in one clause."""
    return (
        f"step {measure.step}, `{measure.name}`: {_percent(measure.difference)} off, "
        f"{_percent(measure.tolerance)} allowed"
    )


def _percent(part: float) -> str:
    """Return a part of a size in percent, with two digits."""
    if math.isinf(part):
        return "infinitely far"
    percent = 100 * part
    return f"{percent:.0f} %" if 99.5 <= percent < 1e6 else f"{percent:.2g} %"
