"""Catches the updates of towers, so that one update can run in their place."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from hookbridge import compat, errors
from hookbridge.patching import InstanceMethods, patched


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
def catch_updates(graph: Any) -> Iterator[list[Update]]:
    """Catches every `apply_gradients` in `graph` on this thread.

    The methods of the optimizer classes are replaced while the tower is built, so that
    an unmodified model function can be replicated. This includes optimizer classes that
    the model function itself defines. A call in another graph or thread is not caught.
    Yields the updates in the order of the calls.
    """
    caught: list[Update] = []
    thread = threading.get_ident()

    def is_here() -> bool:
        return (
            threading.get_ident() == thread
            and tf.compat.v1.get_default_graph() is graph
        )

    with contextlib.ExitStack() as stack:

        def replace(cls: Any, method: str, make: Callable[..., Any]) -> None:
            patch = InstanceMethods(cls, {method: make(vars(cls)[method], is_here)})
            patch.install()
            stack.callback(patch.remove)

        catching = functools.partial(_catching, caught)

        def defined(cls: Any) -> None:
            if "apply_gradients" in vars(cls):
                replace(cls, "apply_gradients", catching)

        # The classes that update variables of a v1 graph, and those that cannot.
        bases: list[Any] = [tf.compat.v1.train.Optimizer]
        for keras in compat.keras_flavours():
            if compat.is_keras3(keras):
                for cls in keras.optimizers.Optimizer.__mro__:
                    if "apply" in vars(cls):
                        replace(cls, "apply", _refusing)
            else:
                bases += [keras.optimizers.Optimizer, keras.optimizers.legacy.Optimizer]
        for cls in {c for base in bases for c in _with_own(base, "apply_gradients")}:
            replace(cls, "apply_gradients", catching)
        for base in bases:
            stack.enter_context(_told_of_subclasses(base, defined))
        yield caught


def _with_own(base: Any, method: str) -> Iterator[Any]:
    if method in vars(base):
        yield base
    for sub in base.__subclasses__():
        yield from _with_own(sub, method)


@contextlib.contextmanager
def _told_of_subclasses(base: Any, tell: Callable[[Any], None]) -> Iterator[None]:
    """Calls `tell(cls)` for each class that is derived from `base` in the context."""
    own = vars(base).get("__init_subclass__")

    def init_subclass(cls: type[Any], /, **kwargs: Any) -> None:
        if own is not None:
            own.__get__(None, cls)(**kwargs)
        else:
            super(base, cls).__init_subclass__(**kwargs)
        tell(cls)

    with patched(base, __init_subclass__=classmethod(init_subclass)):
        yield


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
            f"`tf.compat.v1.train`, or of {compat.KERAS_2}.",
            see="towers",
        )

    return apply


def _catching(
    caught: list[Update], original: Callable[..., Any], is_here: Callable[[], bool]
) -> Callable[..., Any]:
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
