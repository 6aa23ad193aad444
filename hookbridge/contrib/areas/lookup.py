"""Tables of `tf.contrib.lookup` whose arguments have other names today."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from hookbridge import compat


class HashTable(tf.compat.v1.lookup.StaticHashTable):  # type: ignore[misc]
    """`tf.contrib.lookup.HashTable`: a table that never changes."""

    def __init__(
        self,
        initializer: Any,
        default_value: Any,
        shared_name: Any = None,
        name: Any = None,
    ) -> None:
        # Two sessions of a cluster share a table by its name.
        super().__init__(initializer, default_value, name=shared_name or name)

    @property
    def init(self) -> Any:
        """The op that fills the table."""
        return self.initializer


def index_table_from_tensor(
    mapping: Any,
    num_oov_buckets: int = 0,
    default_value: int = -1,
    hasher_spec: Any = None,
    dtype: Any = None,
    name: str | None = None,
) -> Any:
    """`tf.contrib.lookup.index_table_from_tensor`."""
    ops = compat.private("lookup_ops")
    return ops.index_table_from_tensor(
        vocabulary_list=mapping,
        num_oov_buckets=num_oov_buckets,
        default_value=default_value,
        hasher_spec=hasher_spec or ops.FastHashSpec,
        dtype=dtype or tf.string,
        name=name,
    )


def index_to_string_table_from_tensor(
    mapping: Any, default_value: str = "UNK", name: str | None = None
) -> Any:
    """`tf.contrib.lookup.index_to_string_table_from_tensor`."""
    return compat.private("lookup_ops").index_to_string_table_from_tensor(
        vocabulary_list=mapping, default_value=default_value, name=name
    )


def string_to_index_table_from_tensor(
    mapping: Any,
    num_oov_buckets: int = 0,
    default_value: int = -1,
    hasher_spec: Any = None,
    name: str | None = None,
) -> Any:
    """`tf.contrib.lookup.string_to_index_table_from_tensor`."""
    return index_table_from_tensor(
        mapping, num_oov_buckets, default_value, hasher_spec, name=name
    )


def string_to_index_table_from_file(
    vocabulary_file: Any = None,
    num_oov_buckets: int = 0,
    vocab_size: int | None = None,
    default_value: int = -1,
    hasher_spec: Any = None,
    name: str | None = None,
) -> Any:
    """`tf.contrib.lookup.string_to_index_table_from_file`."""
    ops = compat.private("lookup_ops")
    return ops.index_table_from_file(
        vocabulary_file,
        num_oov_buckets,
        vocab_size,
        default_value,
        hasher_spec or ops.FastHashSpec,
        name=name,
    )


def string_to_index(
    tensor: Any, mapping: Any, default_value: int = -1, name: str | None = None
) -> Any:
    """`tf.contrib.lookup.string_to_index`."""
    table = index_table_from_tensor(mapping, default_value=default_value, name=name)
    return table.lookup(tensor)


def index_to_string(
    tensor: Any, mapping: Any, default_value: str = "UNK", name: str | None = None
) -> Any:
    """`tf.contrib.lookup.index_to_string`."""
    return index_to_string_table_from_tensor(mapping, default_value, name).lookup(
        tensor
    )
