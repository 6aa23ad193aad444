"""What hookbridge remembers of the objects of others, from one run to the next.

Each model, graph, session or guest has one record, which lives as long as the object.
A `Fact` is one entry of these records. The file that needs a fact declares it, with its
type; all facts are kept here, where they can be forgotten.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, Generic, Literal, TypeVar

Kind = Literal["model", "graph", "session", "guest"]
T = TypeVar("T")

# By the id of its object: the object, and what is remembered of it.
_records: dict[int, tuple[weakref.ref[Any], dict[Fact[Any], Any]]] = {}


class Fact(Generic[T]):
    """Something that is remembered of objects of one kind.

    Objects count as themselves, whatever their `__eq__` and `__hash__` say. Nothing is
    remembered of an object that does not support weak references.

    Args:
      kind: that of the objects.
      name: what it is, for people.
    """

    def __init__(self, kind: Kind, name: str) -> None:
        self.kind: Kind = kind
        self.name = name

    def get(self, owner: Any) -> T | None:
        """Return what is remembered of an object, or None."""
        value: T | None = _record_of(owner).get(self)
        return value

    def put(self, owner: object, value: T) -> None:
        """Remember a value of an object, in place of an earlier one."""
        record = _record_of(owner)
        is_new = not record
        record[self] = value
        if is_new:
            _keep(owner, record)

    def pop(self, owner: object) -> T | None:
        """Forget what is remembered of an object, and return it."""
        value: T | None = _record_of(owner).pop(self, None)
        return value

    def get_or_put(self, owner: object, make: Callable[[], T]) -> T:
        """Return what is remembered of an object; it is made the first time.

        Args:
          owner: the object.
          make: makes the fact.
        """
        value = self.get(owner)
        if value is None:
            value = make()
            self.put(owner, value)
        return value

    def values(self) -> list[T]:
        """Return what is remembered of all objects that are alive."""
        entries = list(_records.values())
        return [record[self] for _, record in entries if self in record]


def _record_of(owner: object) -> dict[Fact[Any], Any]:
    """Return the record of an object; an empty one, not kept, if it has none."""
    entry = _records.get(id(owner))
    return {} if entry is None or entry[0]() is not owner else entry[1]


def _keep(owner: object, record: dict[Fact[Any], Any]) -> None:
    """Keep the record of an object for as long as the object lives."""
    number = id(owner)
    try:
        reference = weakref.ref(owner, lambda _: _records.pop(number, None))
    except TypeError:
        return
    _records[number] = (reference, record)


def forget() -> None:
    """Forget everything, as a new process does."""
    _records.clear()
