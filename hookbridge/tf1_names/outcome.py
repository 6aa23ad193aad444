"""What becomes of a name, and what every module that decides it needs."""

from __future__ import annotations

from typing import NamedTuple

from hookbridge.tf1_names.syntax import is_below
from hookbridge.tf1_names.target import Target, table

V1 = "tf.compat.v1"
ESTIMATOR = "hookbridge.estimator"
# Names that mean different things in `tf.estimator` and `tf.compat.v1.estimator`.
OTHER_IN_V1 = frozenset(table("names")["other in v1"])
# Private names may still be there, and no program reaches what no version had.
_NOT_REMOVED = frozenset({"PRIVATE", "KERAS_COPY", "NOT_IN_1_15"})


class Resolution(NamedTuple):
    """What becomes of one name."""

    code: str
    replacement: str = ""  # a dotted name; empty if a rename does not help
    hint: str = ""  # the way out in words, where there is no replacement

    @property
    def is_removed(self) -> bool:
        """Return whether an import of the name fails, and no other name replaces it."""
        return not self.replacement and self.code not in _NOT_REMOVED

    @property
    def way_out(self) -> str:
        """What to write or do, in words."""
        shown = self.replacement.replace("hookbridge", "hb", 1)
        return f"`{shown}`" if shown else self.hint


def hint(name: str, unknown: str = "see the release notes of TensorFlow") -> str:
    """Return the way out in words for a name without a replacement.

    Args:
      name: the name.
      unknown: the way out where none is known for the name.
    """
    hints: dict[str, str] = table("names")["hints"]
    short = name.replace(f"{V1}.", "tf.", 1)
    prefixes = [p for p in hints if is_below(short, p)]
    longest = max(prefixes, key=len, default="")
    return hints.get(longest, unknown).format(name=name)


def without_replacement(name: str) -> Resolution:
    """Return what becomes of a name without a replacement."""
    return Resolution("GONE", hint=hint(name))


def join_name(*parts: str) -> str:
    """Return a dotted name of those parts that are not empty."""
    return ".".join(part for part in parts if part)


def has_estimator(rest: str, v1: bool = False) -> bool:
    """Return whether the last TensorFlow with Estimator has a name of it."""
    prefix = f"{V1}.estimator" if v1 else "tf.estimator"
    return Target("2.15").has(join_name(prefix, rest))
