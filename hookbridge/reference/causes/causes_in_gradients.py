"""Causes in single gradients: in another order, or not reaching a variable."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from hookbridge.reference.causes.cause import LEAST, Cause, explained, is_near
from hookbridge.reference.causes.first_step import StepEvidence
from hookbridge.reference.causes.rearrangements import rearrangements
from hookbridge.reference.recordings.array_norms import norm


def gradient_causes(evidence: StepEvidence) -> Iterator[Cause]:
    """Yield what explains gradients that differ, where the losses are the same."""
    if evidence.losses is not None and not is_near(*evidence.losses, 1e-4):
        return
    far = {
        name: pair
        for name, pair in evidence.gradients.items()
        if norm(pair.port - pair.reference) > 1e-3 * pair.size
    }
    rearranged: dict[str, Any] = {}
    texts = []
    for name, pair in far.items():
        if not np.any(pair.port) and np.any(pair.reference):
            rearranged[name] = np.zeros_like(pair.port)
            texts.append(f"no gradient reaches `{name}` in the port")
            continue
        for way in rearrangements(pair.reference, pair.port):
            off = explained(pair.port - pair.reference, pair.port - way.value)
            if way.value.shape == pair.port.shape and off >= LEAST:
                rearranged[name] = way.value
                texts.append(f"the gradient of `{name}` comes {way.text}")
                break
    if texts:
        part = evidence.explained(rearranged, None)
        yield Cause("order of a gradient", "; ".join(texts), part)
