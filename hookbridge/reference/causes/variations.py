"""Causes that the reference tried itself: what its first step would give with each.

`graph_variations` runs a copy of the recorded graph with another slope, padding or
order of gates. The recording has what came out, and here the port is compared with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from hookbridge.reference.causes.cause import Cause, explained
from hookbridge.reference.causes.first_step import StepEvidence
from hookbridge.reference.recordings.measures import finite
from hookbridge.reference.recordings.recording_files import VARIATIONS

UNTIED = "untied weights"
# By the loss alone a variation has to be as near as this to be named.
_LEAST_OF_A_LOSS = 0.998
# By a loss and norms it has to explain this part.
_LEAST = 0.99


def variation_causes(evidence: StepEvidence) -> Iterator[Cause]:
    """Yield the variations of the reference's first step that the port is like."""
    if evidence.number != 1 or evidence.losses is None:
        return
    pairing = evidence.pairing
    norms = (
        pairing.reference.steps[0].line["gradient_norms"],
        pairing.port.steps[0].line["gradient_norms"],
    )
    pairs = pairing.variables.pairs
    names = [n for n in norms[0] if pairs.get(n) in norms[1]]
    reference = _vector(evidence.losses[0], norms[0], names)
    port = _vector(evidence.losses[1], {n: norms[1][pairs[n]] for n in names}, names)
    sizes = _sizes(reference)
    difference = (port - reference) / sizes
    least = _LEAST if names else _LEAST_OF_A_LOSS
    alone: list[tuple[str, Any]] = []
    for variation in pairing.reference.header.get(VARIATIONS) or []:
        value = _vector(variation["loss"], variation["gradient_norms"], names)
        part = explained(difference, (port - value) / sizes)
        if part >= least:
            yield Cause(variation["name"], variation["text"], part)
        if variation["name"] == UNTIED:
            alone.append((variation["text"], value))
    texts, value = _several_untied(reference, port, alone)
    part = explained(difference, (port - value) / sizes)
    if len(texts) > 1 and part >= least:
        yield Cause(UNTIED, "; ".join(texts), part)


def _sizes(reference: Any) -> Any:
    """Return what differences are divided by: the loss, and large norms."""
    sizes = np.maximum(np.abs(reference), 1e-3 * np.abs(reference[1:]).max(initial=0.0))
    sizes[0] = abs(reference[0])
    return np.where(sizes > 0, sizes, 1.0)


def _several_untied(
    reference: Any, port: Any, alone: list[tuple[str, Any]]
) -> tuple[list[str], Any]:
    """Return, of each variable, the use that is nearest to its gradient in the port."""
    value, texts = reference.copy(), {}
    for text, alternative in alone:
        moved = np.abs(alternative - reference) > 1e-6 * np.abs(reference)
        for n in np.flatnonzero(moved):
            if n and abs(alternative[n] - port[n]) < abs(value[n] - port[n]):
                value[n], texts[int(n)] = alternative[n], text
    return list(texts.values()), value


def _vector(loss: Any, norms: Mapping[str, Any], names: list[str]) -> Any:
    """Return a loss and the norms of gradients; 0 for one that is not known."""
    return np.array([finite(float(loss)), *(finite(norms.get(n, 0.0)) for n in names)])
