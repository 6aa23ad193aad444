"""Causes of a difference in what both begin with: batches and initial weights."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from hookbridge.reference.causes.cause import LEAST, Cause, explained, share_of
from hookbridge.reference.causes.rearrangements import rearrangements
from hookbridge.reference.recordings.array_norms import wide
from hookbridge.reference.recordings.differences import Pairing
from hookbridge.reference.recordings.measures import Measure


def data_causes(pairing: Pairing, first: Measure) -> Iterator[Cause]:
    """Yield what made two batches differ."""
    reference_batch = pairing.reference.steps[first.step - 1].arrays("batch")
    port_batch = pairing.port.steps[first.step - 1].arrays("batch")
    a, b = reference_batch[first.name], port_batch[pairing.batch.pairs[first.name]]
    if a.shape != b.shape:
        text = f"another shape: {list(a.shape)} in the reference, {list(b.shape)} in "
        yield Cause("shape", f"{text}the port")
        return
    for step in pairing.reference.steps:
        stored = step.arrays("batch").get(first.name)
        if step.number != first.step and np.array_equal(stored, b):
            text = f"it is the batch of step {step.number}: another order of batches"
            yield Cause("order of batches", text, 1.0)
    if not a.ndim or {a.dtype.kind, b.dtype.kind} & {"S", "U"}:
        return
    a, b = wide(a), wide(b)
    for name, text, predicted, parameters in _possible_changes(first.name, a, b):
        yield Cause(name, text, explained(b - a, b - predicted), parameters)


def _possible_changes(name: str, a: Any, b: Any) -> Iterator[tuple[str, str, Any, int]]:
    """Yield what one array may have become: `(name, text, array, fitted numbers)`."""
    for shift in (1, -1):
        if len(a) > 3:
            rolled = np.roll(a, shift, axis=0)
            # The example at the end may be that of another batch.
            rolled[0 if shift > 0 else -1] = b[0 if shift > 0 else -1]
            text = f"shifted by one example: `{name}` does not belong to its row"
            yield "shifted", text, rolled, 0
        text = f"`{name}` is {-shift:+d} off: counted from 0 or from 1"
        yield "off by one", text, a - shift, 0
    factor = share_of(a, b)
    text = f"`{name}` is scaled by {factor:.4g}: normalised in one of the two"
    yield "scaled", text, factor * a, 1
    line = np.random.RandomState(0).randn(a[0].size if len(a) else 0)
    order = np.argsort(np.argsort(b.reshape(len(b), -1) @ line, kind="stable"))
    text = "the same examples in another order: shuffled, or read in another order"
    yield (
        "shuffled",
        text,
        a[np.argsort(a.reshape(len(a), -1) @ line, kind="stable")][order],
        0,
    )


def initial_causes(pairing: Pairing, first: Measure) -> Iterator[Cause]:
    """Yield what made two initial weights differ."""
    a = wide(pairing.reference.initial[first.name])
    b = wide(pairing.port.initial[pairing.variables.pairs[first.name]])
    for way in rearrangements(a, b):
        if way.value.shape != b.shape:
            continue
        far = b - (a if a.shape == b.shape else 0.0)
        part = explained(far, b - way.value)
        if part >= LEAST:
            text = f"`{first.name}` comes {way.text}; TensorFlow has [in, out]"
            yield Cause("order of a weight", text, part)
    if a.shape != b.shape and sorted(a.shape) == sorted(b.shape):
        text = (
            f"`{first.name}` has another order of axes: {list(a.shape)} in the "
            f"reference, {list(b.shape)} in the port; TensorFlow has the output last"
        )
        yield Cause("order of axes", text)
