"""Catches the updates of towers, and applies one update in their place."""

from __future__ import annotations

import contextlib
import functools
import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from hookbridge import errors
from hookbridge.adapters.session_graph.graph_ops import ancestors
from hookbridge.ground import compat
from hookbridge.ground.patching import Patches, patched
from hookbridge.ground.protocols import Graph


@dataclass(frozen=True)
class Update:
    """One call of `apply_gradients` in one tower, which got `done` instead.

    The scopes are those of the call; they name the optimizer's own variables.
    """

    apply: Callable[..., Any]
    pairs: list[tuple[Any, Any]]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    done: Any
    variable_scope: Any
    name_scope: str


@contextlib.contextmanager
def catch_updates(graph: Graph) -> Iterator[list[Update]]:
    """Catch every `apply_gradients` in `graph` on this thread, in their order.

    The methods of all optimizer classes are replaced while the tower is built, also of
    those that the model function defines, so that it needs no change.
    """
    caught: list[Update] = []
    thread = threading.get_ident()

    def defer(apply: Any, grads_and_vars: Any, *args: Any, **kwargs: Any) -> Any:
        name_scope = graph.get_name_scope()
        done = tf.no_op(name="deferred_update")
        caught.append(
            Update(
                apply=apply,
                pairs=list(grads_and_vars),
                args=args,
                kwargs=kwargs,
                done=done,
                variable_scope=tf.compat.v1.get_variable_scope(),
                name_scope=name_scope,
            )
        )
        return done

    with contextlib.ExitStack() as stack:

        def replace(cls: Any, method: str, instead: Callable[..., Any]) -> None:
            original = vars(cls).get(method)
            if original is None:
                return

            @functools.wraps(original)
            def replaced(self: Any, *args: Any, **kwargs: Any) -> Any:
                is_here = tf.compat.v1.get_default_graph() is graph
                if not is_here or threading.get_ident() != thread:
                    return original(self, *args, **kwargs)
                return instead(original.__get__(self), *args, **kwargs)

            patch = Patches(cls, {method: replaced})
            patch.install()
            stack.callback(patch.remove)

        # The classes that update variables of a v1 graph, and those that cannot.
        bases: list[Any] = [tf.compat.v1.train.Optimizer]
        for keras in compat.keras_flavours():
            if compat.is_keras3(keras):
                for cls in keras.optimizers.Optimizer.__mro__:
                    replace(cls, "apply", _refuse)
            else:
                bases += [keras.optimizers.Optimizer, keras.optimizers.legacy.Optimizer]
        for cls in {cls for base in bases for cls in _with_subclasses(base)}:
            replace(cls, "apply_gradients", defer)
        for base in bases:
            made = functools.partial(replace, method="apply_gradients", instead=defer)
            stack.enter_context(_told_of_subclasses(base, made))
        yield caught


def _with_subclasses(base: Any) -> Iterator[Any]:
    yield base
    for sub in base.__subclasses__():
        yield from _with_subclasses(sub)


@contextlib.contextmanager
def _told_of_subclasses(base: Any, tell: Callable[[Any], None]) -> Iterator[None]:
    """Call `tell(cls)` for each class that is derived from `base` in the context."""
    original = vars(base).get("__init_subclass__")

    def init_subclass(cls: type[Any], /, **kwargs: Any) -> None:
        if original is not None:
            original.__get__(None, cls)(**kwargs)
        else:
            super(base, cls).__init_subclass__(**kwargs)
        tell(cls)

    with patched(base, __init_subclass__=classmethod(init_subclass)):
        yield


def _refuse(apply: Any, *args: Any, **kwargs: Any) -> Any:
    raise errors.RefusedError(
        f"Received the Keras 3 optimizer `{type(apply.__self__).__name__}`, which "
        "cannot update the variables of a v1 graph; expected an optimizer of "
        f"`tf.compat.v1.train`, or of {compat.keras_2_advice()}.",
        see="towers",
    )


def apply_averaged(
    towers: Sequence[list[Update]], shards: Sequence[Any], *, divisor: float
) -> None:
    """Apply the towers' updates as one, through the first tower's optimizers.

    The operation that each tower got for its update (`Update.done`) then waits for the
    real one, and with it what the model function put after it, such as moving averages.
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
    updates = list(zip(*towers, strict=True))
    for same in updates:
        _check_examples(same, shards)
    # A scope counts the names in it while it is open, so each scope is entered once.
    for scope, together in itertools.groupby(updates, lambda u: u[0].variable_scope):
        with tf.compat.v1.variable_scope(scope, auxiliary_name_scope=False):
            for same in together:
                _apply_as_one(same, divisor)


def _check_examples(same: Sequence[Update], shards: Sequence[Any]) -> None:
    """Refuse gradients of a tower that do not come from its own examples.

    Updates of shared variables are the first tower's. So gradients that a model
    function adds up in variables would be those of the first tower in each of them.
    """
    has_own = []
    for update, shard in zip(same, shards, strict=True):
        tensors = tf.nest.flatten(shard, expand_composites=True)
        users = {op for x in tensors if x is not None for op in x.consumers()}
        gradients = [gradient for gradient, _ in update.pairs if gradient is not None]
        flat = tf.nest.flatten(gradients, expand_composites=True)
        ops = [x.op for x in flat if hasattr(x, "op")]
        has_own.append(bool(users & ancestors(ops)))
    if has_own[0] and not all(has_own):
        raise errors.InvalidArgumentError(
            f"Tower {has_own.index(False)} applies gradients computed from the "
            "examples of tower 0. Variable updates run only in tower 0, including "
            "those by which `model_fn` accumulates gradients. Accumulate them in "
            "`apply_gradients` of an optimizer subclass instead."
        )


def _average(gradients: list[Any], divisor: float) -> Any:
    """Return the mean of the gradients of one variable.

    A tower without one counts as zero.

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
    """Apply one update of all towers, as the first tower asked for it."""
    names = [[variable.name for _, variable in update.pairs] for update in same]
    if any(tower_names != names[0] for tower_names in names):
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


def _apply(apply: Callable[[], Any], optimizer: object) -> Any:
    """Call `apply`; with several workers only the worker's own step has to wait.

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
