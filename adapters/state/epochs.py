"""With which epoch a training goes on, by what its loop has saved.

A session saves how it counts epochs, `fit` and loops of the user's own the number of
the epoch, with the step at which it began. `epoch_logs` are the means of the open
epoch, None if none is open.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple


class Epoch(NamedTuple):
    """The epoch with which a training goes on."""

    number: int
    is_open: bool  # it has begun, and has not had all its steps
    start: int | None = None  # the global step at which it began, if that is known


def of_loop(loop: Mapping[str, Any], step: int) -> Epoch | None:
    """Return the epoch after a step, by what a loop has saved then.

    None if it is unknown.
    """
    is_open, number = loop.get("epoch_logs") is not None, loop.get("epoch")
    length = loop.get("steps_per_epoch")
    if number is not None:
        start = (loop.get("origin") or (0, None))[1]
        return Epoch(int(number), is_open, None if start is None else int(start))
    if not length:
        return None
    first, start = loop.get("origin") or (0, 0)
    epochs = (step - int(start)) // int(length)
    return Epoch(int(first) + epochs, is_open, int(start) + epochs * int(length))


def of_loops(loops: Iterable[Mapping[str, Any]], step: int) -> Epoch | None:
    """Return the epoch after a step, by the first of several loops that knows it."""
    epochs = (of_loop(loop, step) for loop in loops)
    return next((epoch for epoch in epochs if epoch is not None), None)
