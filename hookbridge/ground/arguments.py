"""Checks of arguments that several public functions take."""

from __future__ import annotations

import inspect
import os
import reprlib
import sys
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

from hookbridge import errors


class _Short(reprlib.Repr):
    """Short strings for values; Python refuses to write out integers of many digits."""

    def repr_int(self, x: int, level: int) -> str:
        """Return an integer."""
        try:
            repr(x)
        except ValueError:
            return f"an integer of {x.bit_length()} bits"
        return super().repr_int(x, level)


_SHORT = _Short()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 200
_SHORT.maxdict = _SHORT.maxlist = _SHORT.maxtuple = _SHORT.maxset = 20


def optional_count(name: str, value: object, *, least: int = 1) -> int | None:
    """Return a count, as `count` checks it by the same arguments; None stays None.

    Raises:
      errors.InvalidArgumentError: it is something else.
    """
    if value is None:
        return None
    return _count(name, value, least, f"an integer of at least {least}, or None")


def count(name: str, value: object, *, least: int = 1) -> int:
    """Return a count: an integer of at least `least`.

    A number without a fraction, such as `2.0` or NumPy's integers, counts as integer.

    Args:
      name: the argument's name, for the message.
      value: what was received.
      least: the smallest count that is accepted.

    Raises:
      errors.InvalidArgumentError: it is something else.
    """
    return _count(name, value, least, f"an integer of at least {least}")


def _count(name: str, value: Any, least: int, expected: str) -> int:
    """Return a count; `expected` ends the message."""
    try:
        good = not isinstance(value, bool) and int(value) == value and value >= least
    except (TypeError, ValueError, OverflowError):
        good = False  # no number, NaN, infinite
    if not good:
        raise errors.InvalidArgumentError(
            f"Received `{name}={shown(value)}`; expected {expected}."
        )
    return int(value)


def choice(name: str, value: object, choices: Sequence[str]) -> None:
    """Refuse a value that is none of some words.

    Args:
      name: the argument's name, for the message.
      value: what was received.
      choices: the words that are accepted.

    Raises:
      errors.InvalidArgumentError: it is none of them.
    """
    if not isinstance(value, str) or value not in choices:
        raise errors.InvalidArgumentError(
            f"Received `{name}={shown(value)}`; expected one of {', '.join(choices)}."
        )


def instance(name: str, value: Any, kind: Any, expected: str) -> Any:
    """Return a value of a type, or of one of several.

    Args:
      name: the argument's name, for the message.
      value: what was received.
      kind: the type, or a tuple of types.
      expected: the end of the message.

    Raises:
      errors.InvalidArgumentError: the value is of another type.
    """
    if not isinstance(value, kind):
        raise errors.InvalidArgumentError(
            f"Received `{name}={shown(value)}` of type `{type(value).__name__}`; "
            f"expected {expected}."
        )
    return value


def path(name: str, value: Any, expected: str = "a path as text") -> str:
    """Return a path or URL that is not empty, as a string.

    Args:
      name: the argument's name, for the message.
      value: what was received.
      expected: the end of the message.

    Raises:
      errors.InvalidArgumentError: it is neither text nor an `os.PathLike`, or empty.
    """
    instance(name, value, (str, os.PathLike), expected)
    text = os.fspath(value)
    if not isinstance(text, str) or not text:
        raise errors.InvalidArgumentError(
            f"Received `{name}={shown(value)}`; expected {expected}."
        )
    return text


def shown(value: object) -> str:
    """Return a value as a message shows it: short, whatever its `__repr__` does."""
    return _SHORT.repr(value)


def why_no_file(path: str | os.PathLike[str]) -> str:
    """Return why a path cannot be read as a file, to follow the word which."""
    if os.path.isdir(path):
        return "is a folder"
    return "is not a regular file" if os.path.exists(path) else "does not exist"


def seconds(name: str, value: object) -> float:
    """Return a duration: a finite number of at least 0.

    Args:
      name: the argument's name, for the message.
      value: what was received.

    Raises:
      errors.InvalidArgumentError: it is something else.
    """
    return _finite(name, value, "a finite number of seconds of at least 0", True)


def amount(name: str, value: object) -> float:
    """Return a finite number above 0, checked as `seconds` checks a duration.

    Args:
      name: the argument, for the message.
      value: what was given.

    Raises:
      errors.InvalidArgumentError: it is anything else.
    """
    return _finite(name, value, "a finite number above 0", False)


def _finite(name: str, value: Any, expected: str, may_be_zero: bool) -> float:
    """Return a finite number that is not negative; `expected` ends the message."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    is_zero = is_number and value == 0
    if not (is_zero and may_be_zero) and not (
        is_number and 0 < value <= sys.float_info.max
    ):
        raise errors.InvalidArgumentError(
            f"Received `{name}={shown(value)}`; expected {expected}."
        )
    return float(value)


def check_divides(batch_size: int, num_towers: int) -> None:
    """Check that every tower gets the same number of examples.

    Args:
      batch_size: the number of examples in a batch.
      num_towers: the number of towers that share them.

    Raises:
      errors.InvalidArgumentError: the batch does not divide.
    """
    if batch_size % num_towers:
        down = batch_size - batch_size % num_towers
        message = (
            f"Received a batch of {batch_size} examples for {num_towers} towers; "
            f"expected a multiple of {num_towers}"
        )
        way_out = (
            f"for example {down} or {down + num_towers}. Change the batch size or the "
            "number of towers, and end the input with "
            "`.batch(..., drop_remainder=True)`."
            if down
            else f"at least one example for each tower. Use at most {batch_size} "
            "towers, or a larger batch."
        )
        raise errors.InvalidArgumentError(f"{message}, {way_out}")


def parameters_of(function: Any) -> Mapping[str, inspect.Parameter]:
    """Return the parameters of a function by name; none if it does not tell."""
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):  # some builtins have no signature
        return {}


def with_arguments(what: str, function: object, *arguments: str, **named: str) -> Any:
    """Return a function once it is known to take some arguments.

    Args:
      what: the argument's name, for the message.
      function: what was received.
      *arguments: the names of the arguments that it is called with, in order.
      **named: those that it is called with by name.

    Raises:
      errors.InvalidArgumentError: it is not a function, or takes others.
    """
    shown_ones = ", ".join([*arguments, *named])
    how = f"as `{what}({shown_ones})`" if shown_ones else "without arguments"
    if not callable(function):
        raise errors.InvalidArgumentError(
            f"Received `{what}={shown(function)}`; expected a function that can be "
            f"called {how}."
        )
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some builtins have none
        return function
    try:
        signature.bind(*arguments, **named)
    except TypeError as e:
        name = getattr(function, "__name__", repr(function))
        raise errors.InvalidArgumentError(
            f"`{what}` is the function `{name}{signature}`; expected one that can be "
            f"called {how}."
        ) from e
    return function


def string_mapping(name: str, value: object) -> dict[str, Any]:
    """Return a dict with string keys; None counts as an empty one.

    Args:
      name: the argument's name, for the message.
      value: what was received.

    Raises:
      errors.InvalidArgumentError: it is not a mapping, or has other keys.
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(k, str) for k in value):
        raise errors.InvalidArgumentError(
            f"Received `{name}={shown(value)}`; expected a dict with string keys."
        )
    return dict(value)


def not_writable(directory: str) -> tuple[str, str] | None:
    """Return the nearest directory that exists, and why files cannot be written there.

    None if they can. Nothing is left behind. Remote file systems (`gs://...`) are left
    to TensorFlow.
    """
    if "://" in directory:
        return None
    existing = os.path.abspath(directory)
    while not os.path.lexists(existing):
        existing = os.path.dirname(existing)
    try:
        # Permission bits would not show a read-only file system.
        with tempfile.TemporaryFile(dir=existing):
            return None
    except OSError as e:
        return existing, (e.strerror or str(e)).lower()


def writable(directory: str | os.PathLike[str], *, name: str) -> str:
    """Create `directory`, prove that files can be written there, and return it.

    Args:
      directory: a path or URL.
      name: the argument's name, for the message.

    Raises:
      errors.InvalidArgumentError: it is not a path.
      errors.UnwritableError: it cannot be made, or no file can be written there.
    """
    folder = path(name, directory, "a directory")
    problem = not_writable(folder)
    if problem is None and "://" not in folder:
        try:
            os.makedirs(folder, exist_ok=True)
        except OSError as e:
            problem = folder, (e.strerror or str(e)).lower()
    if problem is not None:
        raise errors.UnwritableError(
            f"Received {name}={folder!r}, which cannot be written ({problem[1]}); "
            "expected a directory that exists or can be made. Give another directory, "
            "or permission to write there."
        )
    return folder
