"""Variables, queues, tables and iterators that hooks make in the live graph.

The runtime keeps such resources by name for the whole process. Those of a session are
new, shared by its runs, and end with it: they are in a container of its own.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import tensorflow as tf

_COUNTER = itertools.count()

# The only type of op whose resource belongs to its kernel and has no name.
ONE_SHOT = "OneShotIterator"


def compiled(function: Callable[..., Any], **options: Any) -> Any:
    """A `tf.function` of a function that autograph need not convert."""
    return tf.function(tf.autograph.experimental.do_not_convert(function), **options)


class SessionResources:
    """The resources of one live session; `make` builds one op while tracing."""

    def __init__(self, graph: Any, make: Callable[[Any, Any, SessionResources], Any]):
        self._graph = graph
        self._make = make
        self._container = f"hookbridge{next(_COUNTER)}"
        self._named: set[str] = set()
        self._iterators: dict[str, Any] = {}
        # A one-shot iterator dies with the function that made it.
        self._functions: list[Any] = []

    def place(self, node: Any) -> bool:
        """Puts the resource of a node into this container; whether it has one."""
        if "container" not in node.attr or "shared_name" not in node.attr:
            return False
        node.attr["container"].s = self._container.encode()
        if node.op != ONE_SHOT:
            # Without a name each function would make another resource.
            name = node.attr["shared_name"].s or node.name.encode()
            node.attr["shared_name"].s = name
            if not node.input:
                self._named.add(node.name)
        return True

    def iterator(self, name: str) -> Any:
        """The handle of the one-shot iterator that the op `name` makes."""
        if name not in self._iterators:
            with tf.init_scope():  # a run is being traced
                function = self._function([name])
                self._functions.append(function)
                (self._iterators[name],) = function()
        return self._iterators[name]

    def _function(self, names: list[str], destroy: bool = False) -> Any:
        def build() -> list[Any]:
            handles = []
            for name in names:
                handle = self._make(
                    self._graph, self._graph.get_operation_by_name(name), self
                )
                if destroy and handle.dtype == tf.resource:
                    tf.raw_ops.DestroyResourceOp(
                        resource=handle, ignore_lookup_error=True
                    )
                else:
                    handles.append(handle)
            return [] if destroy else handles

        return compiled(build).get_concrete_function()

    def destroy(self) -> None:
        """Frees the resources that the session's runs have made."""
        self._iterators.clear()
        self._functions.clear()
        names, self._named = sorted(self._named), set()
        if names:
            self._function(names, destroy=True)()
