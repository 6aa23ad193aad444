"""Which entry of a TF1 checkpoint belongs to a variable of a Keras model."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from hookbridge import errors
from hookbridge.adapters.keras_model import optimizers
from hookbridge.adapters.keras_model.variables import ModelVariable
from hookbridge.checkpoints.numbered_names import pairs_by_order
from hookbridge.checkpoints.slot_names import SlotEntries, SlotName, slot_name
from hookbridge.ground.protocols import KerasModel

# Slots of v1 optimizers: kind of optimizer -> Keras's slot name -> suffix that the v1
# optimizer appends to the variable's name.
_SLOTS = {
    "adam": {"m": "Adam", "momentum": "Adam", "v": "Adam_1", "velocity": "Adam_1"},
    "sgd": {"m": "Momentum", "momentum": "Momentum"},
    "adagrad": {"accumulator": "Adagrad"},
    "rmsprop": {"velocity": "RMSProp", "momentum": "RMSProp_1"},
    "adadelta": {
        "accumulated_grad": "Adadelta",
        "accumulated_delta_var": "Adadelta_1",
    },
    "ftrl": {"accumulator": "Ftrl", "linear": "Ftrl_1"},
}


class Entries:
    """Finds the entries of one checkpoint for the variables of one model.

    Args:
      model: the model.
      shapes: `{entry: shape}` of the checkpoint.
      lookup: returns the entry that the user has named for a variable, or None.
      variables: all variables of the model that a checkpoint holds.
    """

    def __init__(
        self,
        model: KerasModel,
        shapes: Mapping[str, Any],
        lookup: Callable[[str], str | None] | None,
        variables: list[ModelVariable],
    ) -> None:
        self._model = model
        self._shapes = shapes
        self._lookup = lookup or (lambda name: None)
        self._weights = {v.name: v for v in variables if v.is_weight}
        self._slots = SlotEntries(shapes)
        slots = [v.name for v in variables if v.is_of_optimizer]
        self._by_order = pairs_by_order(slots, shapes)

    def of(self, variable: ModelVariable) -> str | None:
        """Return the entry for a variable, or None."""
        name = variable.name
        choice = self._lookup(name)
        if choice is not None:
            if choice not in self._shapes:
                raise errors.InvalidArgumentError(
                    f"`names` maps `{name}` to `{choice}`, which the checkpoint does "
                    f"not have. It has: {', '.join(sorted(self._shapes))}."
                )
            return choice
        if variable.is_of_optimizer:
            slot = slot_name(name, self._weights)
            if slot is not None:
                return self._of_slot(name, slot)
            if name in self._by_order:
                return self._by_order[name]
        candidates = [name, f"{self._model.name}/{name}"]
        if name.endswith(("/iterations", "/iteration", "/iter")):
            candidates.append("global_step")
        for candidate in candidates:
            if candidate in self._shapes:
                return candidate
        return self._with_another_number(name) if variable.is_of_optimizer else None

    def _of_slot(self, name: str, slot: SlotName) -> str | None:
        """Return the entry of a slot, which follows the entry of its weight."""
        weight = self.of(self._weights[slot.weight])
        if weight is None:
            return None
        slots = self._slots.of(slot, weight.removeprefix(f"{self._model.name}/"))
        if len(slots) == 1 or name in slots:
            return name if name in slots else slots[0]
        suffix = _v1_suffix(self._model, name, slot.weight)
        if suffix is not None and f"{weight}/{suffix}" in self._shapes:
            return f"{weight}/{suffix}"
        return self._by_order.get(name) if weight == slot.weight else None

    def _with_another_number(self, name: str) -> str | None:
        """Return the only entry of a name without the numbers of Keras."""
        bare = _unnumbered(self._model, name)
        same = [e for e in self._shapes if _unnumbered(self._model, e) == bare]
        return same[0] if len(same) == 1 else None


def _numbered(name: str) -> tuple[str, int]:
    """Return a name without the number that Keras adds, and the number."""
    bare, separator, number = name.rpartition("_")
    return (bare, int(number)) if separator and number.isdecimal() else (name, 0)


def _unnumbered(model: KerasModel, name: str) -> str:
    """Return the name of an optimizer's variable without the numbers that Keras adds.

    Keras numbers the models of a process: the second one has
    `adam_1/sequential_1_hidden_kernel_momentum` where the first one has
    `adam/sequential_hidden_kernel_momentum`.
    """
    scope, _, inside = name.partition("/")
    return f"{_numbered(scope)[0]}/{_bare(model, inside)}"


def _bare(model: KerasModel, name: str) -> str:
    """Return the name of an optimizer's variable without that of the model."""
    base = re.escape(_numbered(str(model.name))[0])
    return re.sub(rf"^{base}(_\d+)?_", "", name)


def _v1_suffix(model: KerasModel, name: str, weight: str) -> str | None:
    """Return what a v1 optimizer appends to a weight's name for a slot."""
    # A model of Keras 3 that is not compiled has no attribute `optimizer`.
    optimizer = optimizers.optimizer_of(model)
    scope, _, part = name.partition("/")
    if scope != optimizers.name_of(optimizer):
        return None
    slot = part.removesuffix(f"/{weight}")  # of Keras 2
    for flat in (weight, f"{model.name}/{weight}"):  # of Keras 3
        slot = slot.removeprefix(flat.replace("/", "_") + "_")
    return _SLOTS.get(type(optimizer).__name__.lower(), {}).get(slot)


def converted(model: KerasModel, entry: str, value: object) -> Any:
    """Return the value of an entry as the model's variable takes it.

    A v1 `MomentumOptimizer` accumulates gradients, Keras's SGD accumulates updates.
    """
    if entry.endswith("/Momentum"):
        rate = optimizers.learning_rate_variable(model.optimizer)
        if rate is not None:
            return -np.asarray(rate) * value
    return value
