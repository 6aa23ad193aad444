"""Eager variables that tell when they are about to be read or assigned.

A callback may keep a variable and use it in any later batch; to bring all of them up to
date in each batch would cost a run per step. So only those in use are read.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any

from hookbridge import errors
from hookbridge.ground import compat
from hookbridge.ground.patching import Patches
from hookbridge.ground.protocols import Variable

_LISTENER = "_hookbridge_listener"


class UseListener:
    """The object that hears of each use of a variable, and may supply its value.

    The variable does not keep its listener alive: it may outlive the session.
    """

    def about_to_use(self) -> None:
        """Note that the value is about to be read or assigned."""

    def give_away(self) -> Any:
        """Return an array that `numpy` returns instead of the value, or None."""
        return None


_NOBODY = UseListener()


def inner(variable: Variable) -> Any:
    """Return the variable inside one that casts its value (mixed precision)."""
    result = getattr(variable, "_variable", None)
    return variable if result is None else result


def watch(variable: Variable, listener: UseListener) -> bool:
    """Tell a listener before each use of an eager variable; False if it cannot be.

    Only the variable's class is changed, since Keras's layers hold the object too: each
    use goes through its handle. `listener.about_to_use` may assign to the variable, and
    is then called again.
    """
    plain, watched = _types()
    if type(variable) is plain:
        compat.variable_handle(variable)
        variable.__class__ = watched
    elif type(variable) is not watched:
        return False
    variable.__dict__[_LISTENER] = weakref.ref(listener)
    return True


def _listener_of(variable: Variable) -> UseListener:
    return variable.__dict__[_LISTENER]() or _NOBODY


@functools.cache
def _types() -> tuple[type, type]:
    """Return the class of eager variables, and one that asks its listener first."""
    plain: Any = compat.private("ResourceVariable")

    def get(self: Any) -> Any:
        _listener_of(self).about_to_use()
        return compat.variable_handle(self)

    def put(self: Any, handle: object) -> None:
        self.__dict__["_handle"] = handle

    def numpy(self: Any) -> Any:
        array = _listener_of(self).give_away()
        return plain.numpy(self) if array is None else array

    members = {"_handle": property(get, put), "numpy": numpy}
    return plain, type(plain)(plain.__name__, (plain,), members)


def refuse_assignment(variable: Variable, complaint: str) -> Callable[[Any], None]:
    """Make a variable read-only; return its own `assign`, which still works."""
    assign = variable.assign

    def refuse(*args: Any, **kwargs: Any) -> None:
        raise errors.LiveModelError(complaint, see="model in a session")

    names = ("assign", "assign_add", "assign_sub")
    Patches(variable, dict.fromkeys(names, refuse)).install()
    return assign  # type: ignore[no-any-return]
