"""Where a port first differs from a recorded run, in the order of causes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hookbridge import errors
from hookbridge.ground.arguments import amount, string_mapping
from hookbridge.reference.differences import Pairing
from hookbridge.reference.measures import LAYERS, Layer, Measure, status
from hookbridge.reference.recording_files import Recording
from hookbridge.reference.suspects import suspects_of
from hookbridge.reference.variable_matching import Matching

DRIFT = "drift"
_OF_DRIFT = (
    "a difference that was there before has grown: rounding, or a fault that is "
    "smaller than the tolerance; compare again with a smaller one"
)


@dataclass(frozen=True)
class Comparison:
    """What `compare` returns; `print` shows it as lines.

    Attributes:
      reference: the recorded run.
      port: the port's.
      layers: what was compared, in the order of causes.
      first: the first difference; None if there is none.
      layer: the layer of the first difference, or "drift" for one that has grown.
      suspects: the usual causes of such a difference.
      notes: what else is to be known, such as settings that differ.
      matching: which variable belongs to which.
    """

    reference: Recording
    port: Recording
    layers: list[Layer]
    first: Measure | None
    layer: str | None
    matching: Matching
    suspects: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def is_same(self) -> bool:
        """Whether nothing that was compared differs."""
        return self.first is None

    def __str__(self) -> str:
        lines = []
        for each in self.layers:
            what = f"{len({m.step for m in each.measures})} steps"
            if each.first is not None:
                what = described(each.first)
            lines.append(f"{each.name:<16} {status(each):<20} {each.why_not or what}")
        if self.first is None:
            lines.append("Nothing that was compared differs.")
        else:
            lines.append(f"First difference: {self.layer}, {described(self.first)}")
            lines += [f"  suspect: {each}" for each in self.suspects]
        lines += [f"note: {each}" for each in self.notes]
        for who, left in (
            ("reference", self.matching.unmatched),
            ("port", self.matching.unmatched_port),
        ):
            if left:
                lines.append(f"in the {who} alone: {', '.join(left)}")
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """The comparison for JSON; a number that is not finite is None."""
        first = None if self.first is None else self.first._asdict()
        if first and not math.isfinite(first["difference"]):
            first["difference"] = None
        return {
            "same": self.is_same,
            "layer": self.layer,
            "first": first,
            "suspects": self.suspects,
            "notes": self.notes,
            "layers": [
                {"name": each.name, "status": status(each), "why_not": each.why_not}
                for each in self.layers
            ],
            "unmatched": list(self.matching.unmatched),
            "unmatched_port": list(self.matching.unmatched_port),
        }


def compare(
    reference: Any,
    port: Any,
    *,
    names: Mapping[str, str] | None = None,
    tolerance: float | None = None,
) -> Comparison:
    """Compares two recordings, step by step, in the order of causes.

        print(hb.compare("reference/", "port/"))

    TensorFlow is not imported.

    Args:
      reference: the folder of the reference run.
      port: the folder of the port's recording.
      names: `{recorded name: name in the port}` of variables and parts of batches
        whose names and shapes do not tell.
      tolerance: how far the first loss may be off, as a part of it; the other
        tolerances are multiples of it. None takes that of the numbers' type.

    Returns:
      What differs first, with the usual suspects.

    Raises:
      errors.InvalidArgumentError: a folder has no recording, or one without steps, a
        name does not exist, or the tolerance is no number above 0.
    """
    recorded, ported = Recording(reference), Recording(port)
    for name, recording in (("reference", recorded), ("port", ported)):
        if not recording.steps:
            raise errors.InvalidArgumentError(
                f"Received {name}={str(recording.folder)!r}, a recording without "
                "steps; expected at least one. Its training ended before that."
            )
    chosen = string_mapping("names", names)
    if tolerance is not None:
        amount("tolerance", tolerance)
    pairing = Pairing(recorded, ported, chosen, tolerance)
    layers = [
        Layer(name, measures, "" if measures else pairing.why_not(name))
        for name, measures in pairing.measures().items()
    ]
    places = list(LAYERS)
    firsts = [layer.first for layer in layers if layer.first]
    first = min(firsts, key=lambda m: (m.step, places.index(m.layer)), default=None)
    layer = None if first is None else _layer_of(first, layers)
    suspects = [_OF_DRIFT] if layer == DRIFT else []
    if first is not None and layer != DRIFT:
        suspects = suspects_of(pairing, first)
    notes = list(pairing.notes())
    return Comparison(
        recorded, ported, layers, first, layer, pairing.variables, suspects, notes
    )


def _layer_of(first: Measure, layers: list[Layer]) -> str:
    """The layer of a difference; it is a drift if it was growing before."""
    same = (m for layer in layers for m in layer.measures if m.name == first.name)
    before = [m for m in same if m.layer == first.layer and m.step == first.step - 1]
    grows = any(m.difference > 0.1 * m.tolerance for m in before)
    grows = grows and math.isfinite(first.difference)
    return DRIFT if grows and first.layer != "data" else first.layer


def described(measure: Measure) -> str:
    """A difference in one clause."""
    return (
        f"step {measure.step}, `{measure.name}`: {measure.difference:.2g} "
        f"(at most {measure.tolerance:.2g})"
    )
