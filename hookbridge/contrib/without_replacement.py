"""Names of TensorFlow 1 that were removed without a replacement: using one raises."""

from __future__ import annotations

import os
import sys
from typing import Any, NoReturn

from hookbridge import errors
from hookbridge.tf1_names.outcome import hint
from hookbridge.tf1_names.resolution import resolve
from hookbridge.tf1_names.target import NEWEST, Target, had_in_tf1

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


class Removed:
    """A name that nothing replaces; its full name is `tf.contrib.gan.GANModel`.

    It can be imported, looked at and passed on. Calling it, deriving from it,
    iterating or entering it raises. A module that TensorFlow 1.15 had has those names
    that it had there; of another one nobody knows what it had.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def _used(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise errors.GoneNameError(f"{self._name}{_place()}: {way_out(self._name)}")

    __call__ = __getitem__ = __iter__ = __enter__ = __mro_entries__ = _used

    def __getattr__(self, name: str) -> Any:
        inside = f"{self._name}.{name}"
        is_known = had_in_tf1(self._name) and self._name.startswith("tf.contrib.")
        if name.startswith("__") or (is_known and not had_in_tf1(inside)):
            raise AttributeError(f"`{self._name}` has no attribute `{name}`")
        return Removed(inside)

    def __exit__(self, *error: Any) -> None:
        """Never called: `with` needs it before it calls `__enter__`, which raises."""

    def __instancecheck__(self, item: object) -> bool:
        # No object can be an instance of a class that was removed.
        return False

    def __repr__(self) -> str:
        return f"<{self._name}, which is gone from TensorFlow>"


def way_out(name: str) -> str:
    """Return what a person can do about a name."""
    outcome = resolve(name, Target(NEWEST))
    if outcome is not None and outcome.code == "KERAS_GONE":
        return f"Keras removed this name. Instead: {outcome.hint}."
    if outcome is not None and outcome.code in ("PRIVATE_GONE", "MISSING"):
        kind = "private name" if outcome.code == "PRIVATE_GONE" else "name"
        return f"TensorFlow has no such {kind}. Instead: {outcome.hint}."
    removed = "TensorFlow 1 had this name; it was removed without a replacement."
    return f"{removed} Instead: {hint(name)}."


def _place() -> str:
    """Return the file and line of the program that uses a name, for a message."""
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return f" was used in {frame.f_code.co_filename}:{frame.f_lineno}" if frame else ""
