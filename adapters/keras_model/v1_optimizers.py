"""Optimizers of TensorFlow 1, which Keras 2 wraps or a `train_step` of a user calls.

Keras's wrapper tells none of its variables. They are called here as a v1 graph calls
them, so that a `Saver` of one restores what `fit` has saved.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import tensorflow as tf

from hookbridge.ground.protocols import Optimizer


def v1_inside(optimizer: Optimizer) -> Any:
    """Return the v1 optimizer that an optimizer is or wraps; None for another one."""
    for part in (optimizer, getattr(optimizer, "optimizer", None)):
        if isinstance(part, tf.compat.v1.train.Optimizer):
            return part
    return None


def make_slots(optimizer: Any, weights: Iterable[tf.Variable]) -> None:
    """Make the slots that the first update would make.

    Args:
      optimizer: the v1 optimizer itself.
      weights: the variables that it updates.
    """
    optimizer._create_slots(list(weights))


def named_variables(
    optimizer: Optimizer, weights: Sequence[tuple[tf.Variable, str]], scope: str
) -> list[tuple[tf.Variable, str]]:
    """Return what an optimizer's next updates depend on, with names.

    Args:
      optimizer: the v1 optimizer, or the wrapper of one.
      weights: the variables that it updates, with their names.
      scope: what the name of the counter begins with.
    """
    inner = v1_inside(optimizer)
    named = []
    for weight, weight_name in weights:
        # In the order in which the optimizer has made them, as TensorFlow numbers them.
        slots = [inner.get_slot(weight, slot) for slot in inner._slots]
        present = [slot for slot in slots if slot is not None]
        for number, slot in enumerate(present):
            suffix = f"_{number}" if number else ""
            named.append((slot, f"{weight_name}/{inner.get_name()}{suffix}"))
    named += [(variable, str(n)) for (n, _), variable in inner._non_slot_dict.items()]
    counter = getattr(optimizer, "iterations", None)
    if isinstance(counter, tf.Variable):
        named.append((counter, f"{scope}/iterations"))
    return named
