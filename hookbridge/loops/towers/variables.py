"""Gives every tower the first tower's variables."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from hookbridge import errors


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
