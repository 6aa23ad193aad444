"""Tables of `tf.contrib.lookup` whose arguments have other names today."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from hookbridge.ground import compat
from hookbridge.ground.protocols import AnyFunction, Tensor


class HashTable(tf.compat.v1.lookup.StaticHashTable):  # type: ignore[misc]
    """`tf.contrib.lookup.HashTable`: a table that never changes."""

    def __init__(
        self,
        initializer: object,
        default_value: object,
        shared_name: object = None,
        name: object = None,
    ) -> None:
        # Two sessions of a cluster share a table by its name.
        super().__init__(initializer, default_value, name=shared_name or name)

    @property
    def init(self) -> Any:
        """The op that fills the table."""
        return self.initializer


def _with_mapping(name: str) -> AnyFunction:
    """Return a function whose first argument was called `mapping`."""

    def table(mapping: object, *args: Any, **kwargs: Any) -> Any:
        return getattr(compat.private("lookup_ops"), name)(mapping, *args, **kwargs)

    return table


index_table_from_tensor: AnyFunction = _with_mapping("index_table_from_tensor")
index_to_string_table_from_tensor: AnyFunction = _with_mapping(
    "index_to_string_table_from_tensor"
)


def index_to_string(
    tensor: Tensor, mapping: object, default_value: str = "UNK", name: str | None = None
) -> Any:
    """`tf.contrib.lookup.index_to_string`: the strings at some places of a mapping."""
    table = index_to_string_table_from_tensor(mapping, default_value, name=name)
    return table.lookup(tensor)


def string_to_index(
    tensor: Tensor, mapping: object, default_value: int = -1, name: str | None = None
) -> Any:
    """`tf.contrib.lookup.string_to_index`: the places of strings in a mapping."""
    table = index_table_from_tensor(mapping, default_value=default_value, name=name)
    return table.lookup(tensor)
