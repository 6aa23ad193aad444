"""Arguments and methods that libraries renamed or removed.

data/changes_*.json is the table, one file for each library. A row has what several
owners have in common: their old names, and the current name of each.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import Final, TypeAlias

from hookbridge.tf1_names.target import table

# What there is to do besides renaming, as the tables say it.
BECOMES_PREFETCH: Final = "becomes prefetch"  # its value goes to a call of `prefetch`
COUNTED_SAMPLES: Final = "counted samples"  # its value has to count steps
NEEDS_NO_NAME: Final = "needs no name"  # as the second argument it is given by place
SECOND_OF_TWO: Final = "second of two"  # it may be the second argument by place


@dataclasses.dataclass(frozen=True)
class Change:
    """An argument or a method that a library renamed or removed.

    Attributes:
      owner: what had it: a function by its dotted name (`numpy.save`), a method of any
        object (`.fit`), a class of Keras by its name alone (`Dense`), or, for what is
        a method itself, any object (`.`).
      old: its old name.
      new: its current name; empty if it was removed.
      since: the release that renamed or removed it; empty if that is not known.
      note: what there is to do besides renaming, such as `BECOMES_PREFETCH`.
      values: its old values, and the current one of each.
    """

    owner: str
    old: str
    new: str
    since: str = ""
    note: str = ""
    values: Mapping[str, object] = dataclasses.field(default_factory=dict)

    def current_value(self, value: object) -> object:
        """Return a value as it is written today."""
        return self.values.get(value, value) if isinstance(value, str) else value


Changes: TypeAlias = dict[str, dict[str, Change]]


@functools.cache
def changes_in(library: str) -> Changes:
    """Return the changes of a library: `{owner: {old name: change}}`."""
    data = table(f"changes_{library}")
    by_owner: Changes = {}
    for row in data["rows"]:
        since, note = row.get("since", ""), row.get("note", "")
        for owner in row["of"]:
            for old, new in row["today"].items():
                values = data.get("values", {}).get(old, {})
                change = Change(owner, old, new, since, note, values)
                by_owner.setdefault(owner, {})[old] = change
    return by_owner


# The functions of libraries other than TensorFlow and Keras.
OF_FUNCTIONS: Changes = changes_in("numpy") | changes_in("python")
_OF_METHODS: Changes = changes_in("keras") | changes_in("tensorflow")


def of_method(method: str) -> dict[str, Change]:
    """Return the changed arguments of a method of whatever object, by old name."""
    return _OF_METHODS.get(f".{method}", {})


def renamed_method(method: str) -> str:
    """Return the current name of a method; empty if it was not renamed."""
    change = _OF_METHODS["."].get(method)
    return change.new if change else ""
