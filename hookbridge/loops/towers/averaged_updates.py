"""Applies the gradients of several towers as one update."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from hookbridge import compat, errors
from hookbridge.loops.towers.deferred_updates import Update


def apply_averaged(towers: Sequence[list[Update]], *, divisor: float) -> None:
    """Applies the towers' updates as one, through the first tower's optimizers.

    The operation that each tower got for its update (`Update.done`) then waits for the
    real update. So operations that the model function put after the update, such as
    moving averages or the gradients of another update, still come after it.

    The scopes of the first tower's call are entered again, so that the variables of an
    optimizer have the same names as without towers. The divisor of the sum of the
    gradients is 1 if the loss is a sum over examples, else the number of towers.
    """
    numbers = {len(updates) for updates in towers}
    if numbers == {0}:
        raise errors.InvalidArgumentError(
            "`model_fn` applied no gradients in mode `train`; expected a call of "
            "`optimizer.minimize` or `optimizer.apply_gradients` of a "
            "`tf.compat.v1.train.Optimizer` (or a Keras 2 optimizer), whose gradients "
            "can be averaged over the towers."
        )
    if len(numbers) > 1:
        raise errors.InvalidArgumentError(
            f"The towers applied gradients {sorted(numbers)} times; expected the same "
            "number of updates in each tower."
        )
    updates = zip(*towers, strict=True)
    # A scope counts the names in it while it is open, so each scope is entered once.
    for scope, together in itertools.groupby(updates, lambda u: u[0].variable_scope):
        with tf.compat.v1.variable_scope(scope, auxiliary_name_scope=False):
            for same in together:
                _apply_as_one(same, divisor)


def _average(gradients: list[Any], divisor: float) -> Any:
    """The mean of the gradients of one variable; a tower without one counts as zero.

    It is `IndexedSlices` if all gradients are, and None if no tower has one.
    """
    gradients = [gradient for gradient in gradients if gradient is not None]
    if not gradients:
        return None
    if all(isinstance(gradient, tf.IndexedSlices) for gradient in gradients):
        values = tf.concat([gradient.values for gradient in gradients], axis=0)
        return tf.IndexedSlices(
            values=values / tf.cast(divisor, values.dtype),
            indices=tf.concat([gradient.indices for gradient in gradients], axis=0),
            dense_shape=gradients[0].dense_shape,
        )
    total = tf.add_n([tf.convert_to_tensor(gradient) for gradient in gradients])
    return total / tf.cast(divisor, total.dtype)


def _apply_as_one(same: Sequence[Update], divisor: float) -> None:
    """Applies one update of all towers, as the first tower asked for it."""
    names = [[variable.name for _, variable in update.pairs] for update in same]
    if any(other != names[0] for other in names):
        raise errors.InvalidArgumentError(
            f"The towers update different variables, {names}; expected the same "
            "variables in the same order in each tower."
        )
    pairs = [
        (_average([gradient for gradient, _ in of_one], divisor), of_one[0][1])
        for of_one in zip(*(update.pairs for update in same), strict=True)
    ]
    first = same[0]
    # An update waits for the model function's own control dependencies, such as update
    # ops. It also waits for every gradient, so that it happens as a whole or not at
    # all: parts that need no gradient, such as the decay of Adam's sparse moments,
    # would otherwise run in the step that meets the end of the data.
    before = [
        *first.done.control_inputs,
        *(
            gradient.values if isinstance(gradient, tf.IndexedSlices) else gradient
            for gradient, _ in pairs
            if gradient is not None
        ),
    ]
    apply = functools.partial(first.apply, pairs, *first.args, **first.kwargs)
    # The trailing slash reuses the scope of that name.
    scope = first.name_scope and f"{first.name_scope}/"
    with tf.compat.v1.name_scope(scope), tf.control_dependencies(before):
        applied = _apply(apply, getattr(first.apply, "__self__", None))
    add_control_inputs = compat.private("add_control_inputs")
    for update in same:
        add_control_inputs(update.done, [getattr(applied, "op", applied)])


def _apply(apply: Callable[[], Any], optimizer: Any) -> Any:
    """Calls `apply`; with several workers only the worker's own step has to wait.

    `SyncReplicasOptimizer.apply_gradients` makes two things: the worker's step, and
    the update that a thread of the chief runs. If both had the control dependencies
    around the call, the chief's thread would run the forward pass too and take
    batches of its own.
    """
    if not isinstance(optimizer, tf.compat.v1.train.SyncReplicasOptimizer):
        return apply()
    with tf.control_dependencies(None):
        step = apply()
    return tf.group(step, name="sync_step")
