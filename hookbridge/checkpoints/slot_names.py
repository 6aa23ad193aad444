"""Which weight the slot of an optimizer belongs to, by the name that Keras gives it.

Keras 2 has `Adam/m/hidden/kernel` or, of the module `legacy`, `Adam/hidden/kernel/m`,
and Keras 3 has `adam/model_hidden_kernel_momentum`; a v1 optimizer has
`hidden/kernel/Adam`. The same name with another weight
in it is that of the other weight's slot.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from hookbridge.checkpoints.numbered_names import without_numbers
from hookbridge.ground.groups import grouped


class SlotName(NamedTuple):
    """The name of a slot, with `_` between all parts.

    Attributes:
      before: what comes before the weight, without the numbers that Keras gives to
        optimizers and models.
      weight: the name of the weight, as it is.
      after: what comes after it.
    """

    before: str
    weight: str
    after: str


def slot_name(name: str, weights: Iterable[str]) -> SlotName | None:
    """Find the weight whose name is in that of a slot; None if none is."""
    flat = _flat(name)
    for weight in sorted(weights, key=len, reverse=True):
        match = re.search(rf"(?<![^_]){re.escape(_flat(weight))}(?=_|$)", flat)
        if match is not None:
            before = without_numbers(flat[: match.start()])
            return SlotName(before, weight, flat[match.end() :])
    return None


class SlotEntries:
    """The entries of a checkpoint, found by the weight of a slot."""

    def __init__(self, entries: Iterable[str]) -> None:
        self._alike = grouped((without_numbers(_flat(e)), e) for e in entries)

    def of(self, slot: SlotName, weight: str) -> list[str]:
        """Return the entries for a slot whose weight is called `weight` there."""
        end = f"{_flat(weight)}{slot.after}"
        return [
            entry
            for entry in self._alike.get(without_numbers(f"{slot.before}{end}"), ())
            if _flat(entry).endswith(end)
            and without_numbers(_flat(entry).removesuffix(end)) == slot.before
        ]


def _flat(name: str) -> str:
    return name.replace("/", "_")
