"""Flags by name, default and help; their types follow from the defaults."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from absl import flags

from hookbridge import errors

_DEFINE: dict[type, Any] = {
    bool: flags.DEFINE_boolean,
    int: flags.DEFINE_integer,
    float: flags.DEFINE_float,
    str: flags.DEFINE_string,
    list: flags.DEFINE_list,
}


def define(
    values: Any,
    name: str,
    default: Any,
    text: str,
    kind: type | Sequence[str] | None = None,
    **bounds: float,
) -> None:
    """Defines one flag.

    Args:
      values: the `FlagValues` that get the flag.
      name: its name.
      default: its default.
      text: its help.
      kind: its type, or the values that it may have; None takes the default's type.
      **bounds: `lower_bound` and `upper_bound` of a number.
    """
    if kind is None or isinstance(kind, type):
        make = _DEFINE[kind or type(default)]
        make(name, default, text, flag_values=values, **bounds)
    else:
        flags.DEFINE_enum(name, default, kind, text, flag_values=values)


def refuse(values: Any, names: Iterable[str], beside: str, reason: str) -> None:
    """Refuses flags that were given and that the command would not use.

    Args:
      values: the command's flags.
      names: the names of the unused flags.
      beside: what was given that makes them unused.
      reason: why they are unused.

    Raises:
      errors.InvalidArgumentError: one of them was given.
    """
    for name in names:
        if values[name].present:
            raise errors.InvalidArgumentError(
                f"Received {beside} and --{name}; expected one of them: {reason}."
            )


def define_fields(
    values: Any,
    defaults: object,
    texts: Mapping[str, str],
    least: Mapping[str, float],
) -> None:
    """Defines one flag for each named field, of its default's type.

    Args:
      values: the `FlagValues` that get the flags.
      defaults: a dataclass instance.
      texts: `{field: help}`.
      least: the smallest value of a number, for the fields that have one.
    """
    for name, text in texts.items():
        bound = {"lower_bound": least[name]} if name in least else {}
        define(values, name, getattr(defaults, name), text, None, **bound)
