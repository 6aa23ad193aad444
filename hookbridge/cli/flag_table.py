"""Flags for the fields of a dataclass."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from absl import flags

_DEFINE = {
    bool: flags.DEFINE_boolean,
    int: flags.DEFINE_integer,
    float: flags.DEFINE_float,
    str: flags.DEFINE_string,
}


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
        default = getattr(defaults, name)
        bound = {"lower_bound": least[name]} if name in least else {}
        _DEFINE[type(default)](name, default, text, flag_values=values, **bound)
