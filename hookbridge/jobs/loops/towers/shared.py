"""Gives every tower the first tower's variables and their updates."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from hookbridge import errors
from hookbridge.ground import compat
from hookbridge.ground.collected import VARIABLES
from hookbridge.ground.patching import patched
from hookbridge.ground.protocols import Graph, Variable

UPDATES = ("Assign", "Scatter", "ResourceScatter")


class SharedVariables:
    """Gives the variables of the first tower, and their updates, to the others.

    `tf.compat.v1.get_variable` shares by name. But `tf.Variable` and the layers of a
    Keras 2 model make a new variable in each call. For these, the n-th creation in a
    tower gives the n-th variable of the first tower, as in `MirroredStrategy`. Each
    tower keeps its own local variables (those of metrics).

    A model function may make its gradients wait for an update, such as a counter,
    without the collection `UPDATE_OPS`. So the n-th update of a shared variable is the
    first tower's too, but for those in a `tf.function`, `tf.cond` or `tf.while_loop`.
    """

    def __init__(self) -> None:
        self._recorded: list[Any] = []
        self._unnamed: list[Any] = []
        self._updates: dict[tuple[str, Any], list[Any]] = {}

    @contextlib.contextmanager
    def scope(self, index: int) -> Iterator[list[Any]]:
        """Return the scope in which tower `index` is built.

        The first tower comes first.

        Yields the tower's local variables in the order of their creation, which the
        graph's own list does not keep for Keras metrics.
        """
        graph = tf.compat.v1.get_default_graph()
        operations = graph.get_operations()
        locals_of_tower: list[Any] = []
        waiting = iter(self._unnamed)

        def make(creator: Callable[..., Any], **kwargs: Any) -> Any:
            is_own = _is_local(kwargs)
            if index and not is_own:
                return _same(next(waiting, None), kwargs)
            variable = creator(**kwargs)
            (locals_of_tower if is_own else self._recorded).append(variable)
            return variable

        updates: Any = contextlib.nullcontext()
        if index:
            updates = self._first_updates(graph, operations)
        with tf.variable_creator_scope(make), updates:
            yield locals_of_tower
        if index == 0:
            self._unnamed = [v for v in self._recorded if not _is_named(v)]
            made = graph.get_operations()[len(operations) :]
            initializers = {variable.initializer for variable in self._recorded}
            for op in made:
                if op not in initializers and (key := _updated(op.type, op.inputs)):
                    self._updates.setdefault(key, []).append(op)
        names = [variable.op.name for variable in waiting]
        if index and names:
            raise errors.InvalidArgumentError(
                f"Tower {index} did not make the variables {names} that tower 0 made; "
                "expected the same variables in each tower. Make a variable in each "
                "call of the model function, or use `tf.compat.v1.get_variable`."
            )

    def _first_updates(self, graph: Graph, before: Sequence[Any]) -> Any:
        """Let an update of a shared variable be the first tower's, in a context."""
        original = compat.private("create_op")
        shared = {op for op in before if op.type in VARIABLES}
        waiting = {key: iter(ops) for key, ops in self._updates.items()}

        def create(op_type: str, inputs: Any, *args: Any, **kwargs: Any) -> Any:
            key = _updated(op_type, inputs)
            if key is None or key[1] not in shared:
                return original(graph, op_type, inputs, *args, **kwargs)
            op = next(waiting.get(key, iter(())), None)
            if op is None:
                raise errors.InvalidArgumentError(
                    f"A tower updates the variable `{key[1].name}` more often than "
                    "tower 0; expected the same updates in each tower."
                )
            return op

        return patched(graph, **{original.__name__: create})


def _is_local(kwargs: dict[str, Any]) -> bool:
    collections = kwargs.get("collections")
    if collections is None:
        return False
    # A Keras metric gives no collection; `EstimatorSpec` makes its variables local.
    return not collections or tf.compat.v1.GraphKeys.LOCAL_VARIABLES in collections


def _is_named(variable: Variable) -> bool:
    """Return whether `get_variable` finds the variable again by its name."""
    # Looked up from the root scope, since the name contains every scope already.
    root = tf.compat.v1.VariableScope(reuse=True, name="")
    name = variable.op.name
    # Slots of optimizers and averages are stored under a name with a slash at the end.
    for key in (name, f"{name}/"):
        try:
            with tf.compat.v1.variable_scope(root, auxiliary_name_scope=False):
                same = tf.compat.v1.get_variable(key, dtype=variable.dtype.base_dtype)
        except ValueError:
            continue
        if same is variable:
            return True
    return False


def _same(variable: Any, kwargs: dict[str, Any]) -> Any:
    """Return tower 0's variable of this name; refuse it if it differs."""
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


def _updated(op_type: str, inputs: Sequence[Any]) -> tuple[str, Any] | None:
    """Return the type of an update and its variable, or None for another op."""
    is_update = op_type.startswith(UPDATES) and inputs
    if is_update and inputs[0].op.type in VARIABLES:
        return op_type, inputs[0].op
    return None
