"""Sets methods and fields on objects of TensorFlow, Keras or the user.

No other module does that (`tests/test_rooms.py` checks it): one search finds every
method that an object does not have from its class, and every field that is written.
docs/decisions/0008-patches-that-stay.md lists the methods that are never removed.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from hookbridge.ground.protocols import Session

# Means "nothing was there", since None may be a value.
MISSING: Any = object()


class Patches:
    """Attributes that replace those of one object, class or module.

    The object's own `__setattr__` is bypassed, since Keras uses it to track what is
    set on a model or layer.
    """

    def __init__(self, target: object, attributes: Mapping[str, Any]) -> None:
        self._target = target
        self._attributes = dict(attributes)
        self._before: dict[str, Any] = {}

    def install(self) -> bool:
        """Put the attributes in place; False if the object has `__slots__`."""
        for name, value in self._attributes.items():
            before = _read(self._target, name)
            try:
                _write(self._target, name, value)
            except AttributeError:
                return False
            self._before[name] = before
        return True

    def remove(self) -> None:
        """Restore what was there, except where somebody else has set another since.

        A method that was set on top of ours calls ours, so it stays.
        """
        while self._before:
            name, before = self._before.popitem()
            if _read(self._target, name) is self._attributes[name]:
                _write(self._target, name, before)


@contextlib.contextmanager
def patched(target: object, **attributes: Any) -> Iterator[None]:
    """Replace attributes for as long as the context is open; see `Patches`."""
    patches = Patches(target, attributes)
    patches.install()
    try:
        yield
    finally:
        patches.remove()


@contextlib.contextmanager
def temporarily(owner: object, **fields: Any) -> Iterator[None]:
    """Set fields of an object of hookbridge for as long as the context is open."""
    before = {name: getattr(owner, name) for name in fields}
    assign(owner, **fields)
    try:
        yield
    finally:
        assign(owner, **before)


def wrap(target: object, **around: Callable[..., Any]) -> None:
    """Call functions in the place of methods, for as long as their owner lives.

    Args:
      target: the object, class or module.
      **around: what is called; it gets the plain method before the arguments, by
        position alone: callers may name arguments as they like.
    """
    methods = {name: _around(getattr(target, name), around[name]) for name in around}
    Patches(target, methods).install()


def _around(plain: Callable[..., Any], call: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that calls `call` with the plain method and its arguments."""
    first = next(iter(inspect.signature(call).parameters.values()))
    if first.kind is not first.POSITIONAL_ONLY:
        raise TypeError(
            f"`{call}` takes `{first.name}` by name too; put `/` behind it."
        )

    @functools.wraps(plain)
    def method(*args: Any, **named: Any) -> Any:
        return call(plain, *args, **named)

    return method


def before_close(session: Session, act: Callable[[], None]) -> None:
    """Call a function once, when a session is closed; it is closed after that.

    Args:
      session: the session.
      act: takes back, or finishes, what is there for the session.
    """
    close = session.close

    @functools.wraps(close)
    def closes() -> None:
        patch.remove()
        act()
        close()

    patch = Patches(session, {"close": closes})
    patch.install()


def assign(target: object, **values: Any) -> None:
    """Set fields as the owner of the object does, through its own `__setattr__`.

    For what the owner reads and writes itself in its next steps: nothing is restored.
    """
    for name, value in values.items():
        setattr(target, name, value)


def _read(target: object, name: str) -> Any:
    if hasattr(target, "__dict__"):
        return vars(target).get(name, MISSING)
    # A `tf.Graph` has attributes of its own, but no `__dict__` that shows them.
    method = getattr(target, name, MISSING)
    is_of_class = getattr(method, "__func__", None) is getattr(type(target), name, None)
    return MISSING if is_of_class else method


def _write(target: object, name: str, value: object) -> None:
    """Set or remove an attribute past the `__setattr__` of its object."""
    if not hasattr(target, "__dict__"):
        if value is MISSING:
            delattr(target, name)
        else:
            setattr(target, name, value)
    elif isinstance(target, type):
        if value is MISSING:
            type.__delattr__(target, name)
        else:
            type.__setattr__(target, name, value)
    elif value is MISSING:
        vars(target).pop(name, None)
    else:
        vars(target)[name] = value
