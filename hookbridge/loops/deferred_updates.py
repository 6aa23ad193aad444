"""Catches the updates of towers so that one update with averaged gradients runs."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hookbridge import compat, errors
from hookbridge.loops.gradients import average_gradients, computed
from hookbridge.loops.sync_replicas import apply_apart, is_synchronous


@dataclass(frozen=True)
class Update:
    """One call of `apply_gradients` in one tower.

    Attributes:
      apply: the optimizer's own `apply_gradients`, bound.
      pairs: its `(gradient, variable)` pairs.
      args: its further positional arguments.
      kwargs: its keyword arguments, among them the global step.
      done: what the tower got instead: an operation that does nothing yet.
    """

    apply: Callable[..., Any]
    pairs: list[tuple[Any, Any]]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    done: Any


def optimizer_bases() -> list[Any]:
    """The classes whose `apply_gradients` updates variables of a v1 graph."""
    import tensorflow as tf

    bases: list[Any] = [tf.compat.v1.train.Optimizer]
    for keras in compat.keras_flavours():
        if not compat.is_keras3(keras):
            bases += [keras.optimizers.Optimizer, keras.optimizers.legacy.Optimizer]
    return bases


@contextlib.contextmanager
def catch_updates(graph: Any) -> Iterator[list[Update]]:
    """Catches every `apply_gradients` in `graph` on this thread.

    The methods of the optimizer classes are replaced for as long as the tower is
    built, so that an unmodified model function can be replicated; a call in another
    graph or thread goes through.

    Yields:
      The updates, in the order of the calls.
    """
    import tensorflow as tf

    caught: list[Update] = []
    thread = threading.get_ident()

    def is_here() -> bool:
        return (
            threading.get_ident() == thread
            and tf.compat.v1.get_default_graph() is graph
        )

    replaced: list[tuple[Any, str, Any]] = []

    def replace(bases: list[Any], method: str, make: Callable[..., Any]) -> None:
        for cls in {c for base in bases for c in _with_own(base, method)}:
            original = vars(cls)[method]
            replaced.append((cls, method, original))
            setattr(cls, method, make(original, is_here))

    try:
        catching = functools.partial(_catching, caught)
        replace(optimizer_bases(), "apply_gradients", catching)
        replace(_keras_3_bases(), "apply", _refusing)
        yield caught
    finally:
        for cls, method, original in replaced:
            setattr(cls, method, original)


def _with_own(base: Any, method: str) -> Iterator[Any]:
    if method in vars(base):
        yield base
    for sub in base.__subclasses__():
        yield from _with_own(sub, method)


def _keras_3_bases() -> list[Any]:
    """The classes of Keras 3 whose `apply` every update goes through."""
    return [
        cls
        for keras in compat.keras_flavours()
        if compat.is_keras3(keras)
        for cls in keras.optimizers.Optimizer.__mro__
        if "apply" in vars(cls)
    ]


def _refusing(
    original: Callable[..., Any], is_here: Callable[[], bool]
) -> Callable[..., Any]:
    @functools.wraps(original)
    def apply(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not is_here():
            return original(self, *args, **kwargs)
        raise errors.RefusedError(
            f"Received the Keras 3 optimizer `{type(self).__name__}`, which cannot "
            "update the variables of a v1 graph; expected an optimizer of "
            "`tf.compat.v1.train`, or of `tf_keras`."
        )

    return apply


def _catching(
    caught: list[Update], original: Callable[..., Any], is_here: Callable[[], bool]
) -> Callable[..., Any]:
    import tensorflow as tf

    def apply_gradients(
        self: Any, grads_and_vars: Any, *args: Any, **kwargs: Any
    ) -> Any:
        if not is_here():
            return original(self, grads_and_vars, *args, **kwargs)
        done = tf.no_op(name="deferred_update")
        bound = original.__get__(self)
        caught.append(Update(bound, list(grads_and_vars), args, kwargs, done))
        return done

    return apply_gradients


def apply_averaged(towers: Sequence[list[Update]], *, divisor: float) -> None:
    """Applies the towers' updates as one, through the first tower's optimizers.

    What the first tower's train op waits for (`Update.done`) then waits for the
    real update, so that whatever its model function put after the update, such as
    moving averages, still comes after it.

    Args:
      towers: the updates of each tower.
      divisor: as in `average_gradients`.

    Raises:
      errors.InvalidArgumentError: there is no update, or the towers differ.
    """
    import tensorflow as tf

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
    add_control_inputs = compat.private("add_control_inputs")
    for same in zip(*towers, strict=True):
        _check_variables(same)
        pairs = average_gradients([update.pairs for update in same], divisor=divisor)
        first = same[0]
        # The model function's own control dependencies, such as update ops.
        before = [*first.done.control_inputs, *computed(pairs)]
        apply = functools.partial(first.apply, pairs, *first.args, **first.kwargs)
        over_workers = is_synchronous(getattr(first.apply, "__self__", None))
        with tf.control_dependencies(before):
            applied = apply_apart(apply) if over_workers else apply()
        add_control_inputs(first.done, [getattr(applied, "op", applied)])


def _check_variables(updates: Sequence[Update]) -> None:
    names = [[variable.name for _, variable in u.pairs] for u in updates]
    if any(other != names[0] for other in names):
        raise errors.InvalidArgumentError(
            f"The towers update different variables, {names}; expected the same "
            "variables in the same order in each tower."
        )
