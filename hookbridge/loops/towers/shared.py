"""Gives every tower the first tower's variables, and their updates once."""

from __future__ import annotations

import collections
import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from hookbridge import compat, errors


class SharedVariables:
    """Records the variables of the first tower and hands them to the others.

    `tf.compat.v1.get_variable` shares by name. But `tf.Variable` and the layers of a
    Keras 2 model make a new variable in each call. For these, the n-th creation in a
    tower gives the n-th variable of the first tower, as in `MirroredStrategy`. Each
    tower keeps its own local variables (those of metrics).
    """

    def __init__(self) -> None:
        self._recorded: list[Any] = []
        self._unnamed: list[Any] = []

    @contextlib.contextmanager
    def scope(self, index: int) -> Iterator[None]:
        """The scope in which tower `index` is built; the first tower comes first."""
        if index == 0:
            with tf.variable_creator_scope(self._record):
                yield
            self._unnamed = [v for v in self._recorded if not _is_named(v)]
            return
        waiting = iter(self._unnamed)

        def reuse(creator: Callable[..., Any], **kwargs: Any) -> Any:
            if _is_local(kwargs):
                return creator(**kwargs)
            return _same(next(waiting, None), kwargs)

        with tf.variable_creator_scope(reuse):
            yield
        names = [variable.op.name for variable in waiting]
        if names:
            raise errors.InvalidArgumentError(
                f"Tower {index} did not make the variables {names} that tower 0 made; "
                "expected the same variables in each tower. Make a variable in each "
                "call of the model function, or use `tf.compat.v1.get_variable`."
            )

    def _record(self, creator: Callable[..., Any], **kwargs: Any) -> Any:
        variable = creator(**kwargs)
        if not _is_local(kwargs):
            self._recorded.append(variable)
        return variable


@contextlib.contextmanager
def recorded_local_variables() -> Iterator[list[Any]]:
    """The local variables made in the context, in the order of their creation.

    The graph's own list does not keep this order for Keras metrics.
    """
    variables: list[Any] = []

    def record(creator: Callable[..., Any], **kwargs: Any) -> Any:
        variable = creator(**kwargs)
        if _is_local(kwargs):
            variables.append(variable)
        return variable

    with tf.variable_creator_scope(record):
        yield variables


def _is_local(kwargs: dict[str, Any]) -> bool:
    collections = kwargs.get("collections")
    if collections is None:
        return False
    # A Keras metric gives no collection; `EstimatorSpec` makes its variables local.
    return not collections or tf.compat.v1.GraphKeys.LOCAL_VARIABLES in collections


def _is_named(variable: Any) -> bool:
    """Whether `get_variable` finds the variable again by its name."""
    # Looked up from the root scope, since the name contains every scope already.
    root = tf.compat.v1.VariableScope(reuse=True, name="")
    name = variable.op.name
    # Slots of optimizers and averages are stored under a name with a slash at the end.
    for key in (name, f"{name}/"):
        try:
            with tf.compat.v1.variable_scope(root, auxiliary_name_scope=False):
                other = tf.compat.v1.get_variable(key, dtype=variable.dtype.base_dtype)
        except ValueError:
            continue
        if other is variable:
            return True
    return False


def _same(variable: Any, kwargs: dict[str, Any]) -> Any:
    name = kwargs.get("name") or "Variable"
    if variable is None:
        raise errors.InvalidArgumentError(
            f"A tower made the variable `{name}` that tower 0 did not make; expected "
            "the same variables in each tower. Make a variable in each call of the "
            "model function, or use `tf.compat.v1.get_variable`."
        )
    wanted = kwargs.get("shape")
    if wanted is None and not callable(kwargs.get("initial_value")):
        wanted = getattr(kwargs.get("initial_value"), "shape", None)
    if wanted is not None and not variable.shape.is_compatible_with(
        tf.TensorShape(wanted)
    ):
        raise errors.InvalidArgumentError(
            f"A tower made the variable `{name}` of shape {wanted} where tower 0 made "
            f"`{variable.op.name}` of shape {variable.shape}; expected the same "
            "variables in the same order in each tower."
        )
    return variable


VARIABLES = ("VarHandleOp", "VariableV2", "Variable")
UPDATES = ("Assign", "Scatter", "ResourceScatter")


def update_once(first: Sequence[Any], own: Sequence[Any], outputs: Any) -> None:
    """Makes a tower wait for the first tower's updates instead of its own.

    A model function may make its gradients wait for an update, such as a counter,
    without the collection `UPDATE_OPS`. Each tower would then update the shared
    variable. Updates in a `tf.function`, `tf.cond` or `tf.while_loop` are not found.

    `first` and `own` are the operations of the first tower and of this one, in the
    order of their creation, and `outputs` the tensors of this one that steps compute.
    """
    mine = set(own)
    updates = _updates(op for op in own if _variable(op) not in mine)
    if not updates:
        return
    instead = _counterparts(_updates(first), updates)
    todo = [
        getattr(tensor, "op", tensor)
        for tensor in tf.nest.flatten(outputs, expand_composites=True)
    ]
    visited: set[Any] = set()
    while todo:
        op = todo.pop()
        if op not in mine or op in visited:
            continue
        visited.add(op)
        if any(control in instead for control in op.control_inputs):
            _wait_for(op, [_once(control, instead) for control in op.control_inputs])
        for tensor in op.inputs:
            if tensor.op in instead:
                raise _refused(tensor.op)
        todo += [*op.control_inputs, *(tensor.op for tensor in op.inputs)]


def _variable(op: Any) -> Any:
    """The variable that the operation changes; None if it changes none."""
    if op.type.startswith(UPDATES) and op.inputs:
        variable = op.inputs[0].op
        if variable.type in VARIABLES:
            return variable
    return None


def _updates(ops: Any) -> dict[Any, list[Any]]:
    """The updates by type and variable, in the order of their creation."""
    groups = collections.defaultdict(list)
    for op in ops:
        variable = _variable(op)
        if variable is not None:
            groups[op.type, variable.name].append(op)
    return groups


def _counterparts(first: Any, own: Any) -> dict[Any, Any]:
    """The first tower's update for each update of a tower; None if it has none."""
    instead: dict[Any, Any] = {}
    for key, ops in own.items():
        # Matched from the end: the first tower may have one more, the initializer.
        firsts = [None] * len(ops) + first.get(key, [])
        instead.update(zip(ops, firsts[-len(ops) :], strict=True))
    return instead


def _once(control: Any, instead: dict[Any, Any]) -> Any:
    replacement = instead.get(control, control)
    if replacement is None:
        raise _refused(control)
    return replacement


def _wait_for(op: Any, control_inputs: list[Any]) -> None:
    compat.private("remove_control_inputs")(op)
    compat.private("add_control_inputs")(op, control_inputs)


def _refused(op: Any) -> Exception:
    return errors.InvalidArgumentError(
        f"The towers compute with the variable `{_variable(op).name}` after "
        f"`{op.name}` changed it; expected updates that run once for all towers. Put "
        "the update into `tf.compat.v1.GraphKeys.UPDATE_OPS` or into the train op, "
        "for example `tf.group(update, optimizer.minimize(...))`."
    )
