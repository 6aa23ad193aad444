"""Catches the updates of towers so that one update with averaged gradients runs."""

from __future__ import annotations

import contextlib
import functools
import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hookbridge import compat, errors
from hookbridge.loops.towers.gradients import average_gradients, computed
from hookbridge.loops.towers.subclasses import told_of_subclasses
from hookbridge.loops.towers.sync_replicas import apply_apart, is_synchronous
from hookbridge.patching import InstanceMethods


@dataclass(frozen=True)
class Update:
    """One call of `apply_gradients` in one tower.

    Attributes:
      apply: the optimizer's own `apply_gradients`, bound.
      pairs: its `(gradient, variable)` pairs.
      args: its further positional arguments.
      kwargs: its keyword arguments, among them the global step.
      done: what the tower got instead: an operation that does nothing yet.
      variable_scope: the variable scope of the call, which names the optimizer's
        own variables.
      name_scope: the name scope of the call; "" for none.
    """

    apply: Callable[..., Any]
    pairs: list[tuple[Any, Any]]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    done: Any
    variable_scope: Any
    name_scope: str


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
    built, those of classes that the model function defines too, so that an
    unmodified model function can be replicated; a call in another graph or thread
    goes through.

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

    patches: list[InstanceMethods] = []

    def replace(cls: Any, method: str, make: Callable[..., Any]) -> None:
        replacement = make(vars(cls)[method], is_here)
        patches.append(InstanceMethods(cls, {method: replacement}))
        patches[-1].install()

    catching = functools.partial(_catching, caught)

    def defined(cls: Any) -> None:
        if "apply_gradients" in vars(cls):
            replace(cls, "apply_gradients", catching)

    bases = optimizer_bases()
    try:
        for cls in {c for base in bases for c in _with_own(base, "apply_gradients")}:
            replace(cls, "apply_gradients", catching)
        for cls in _keras_3_bases():
            replace(cls, "apply", _refusing)
        with contextlib.ExitStack() as stack:
            for base in bases:
                stack.enter_context(told_of_subclasses(base, defined))
            yield caught
    finally:
        for patch in reversed(patches):
            patch.remove()


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
        name_scope = tf.compat.v1.get_default_graph().get_name_scope()
        done = tf.no_op(name="deferred_update")
        caught.append(
            Update(
                apply=original.__get__(self),
                pairs=list(grads_and_vars),
                args=args,
                kwargs=kwargs,
                done=done,
                variable_scope=tf.compat.v1.get_variable_scope(),
                name_scope=name_scope,
            )
        )
        return done

    return apply_gradients


def apply_averaged(towers: Sequence[list[Update]], *, divisor: float) -> None:
    """Applies the towers' updates as one, through the first tower's optimizers.

    What the towers got for their updates (`Update.done`) then waits for the real
    one, so that whatever the model function put after the update, such as moving
    averages or the gradients of another update, still comes after it.

    The variables that an optimizer makes have the names that they have without
    towers, since the scopes of the first tower's call are entered again.

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
    updates = zip(*towers, strict=True)
    # Once into each scope: it counts the names in it as long as it is open.
    for scope, together in itertools.groupby(updates, lambda u: u[0].variable_scope):
        with tf.compat.v1.variable_scope(scope, auxiliary_name_scope=False):
            for same in together:
                _apply_as_one(same, divisor)


def _apply_as_one(same: Sequence[Update], divisor: float) -> None:
    """Applies one update of all towers, as the first tower asked for it."""
    import tensorflow as tf

    _check_variables(same)
    pairs = average_gradients([update.pairs for update in same], divisor=divisor)
    first = same[0]
    # The model function's own control dependencies, such as update ops.
    before = [*first.done.control_inputs, *computed(pairs)]
    apply = functools.partial(first.apply, pairs, *first.args, **first.kwargs)
    over_workers = is_synchronous(getattr(first.apply, "__self__", None))
    # The trailing slash takes the scope as it is.
    scope = first.name_scope and f"{first.name_scope}/"
    with tf.compat.v1.name_scope(scope), tf.control_dependencies(before):
        applied = apply_apart(apply) if over_workers else apply()
    add_control_inputs = compat.private("add_control_inputs")
    for update in same:
        add_control_inputs(update.done, [getattr(applied, "op", applied)])


def _check_variables(updates: Sequence[Update]) -> None:
    names = [[variable.name for _, variable in u.pairs] for u in updates]
    if any(other != names[0] for other in names):
        raise errors.InvalidArgumentError(
            f"The towers update different variables, {names}; expected the same "
            "variables in the same order in each tower."
        )
