"""Which TensorFlow name an expression of the syntax tree means."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst

from hookbridge.migrate.reading.names import Names, as_v1, canonical
from hookbridge.migrate.target import Target


class TreeNames:
    """The names of a module, asked by nodes of libcst's tree."""

    def __init__(
        self,
        names: Names,
        place: Callable[[cst.CSTNode], tuple[int, int]],
        target: Target,
    ) -> None:
        self._names, self._place, self._target = names, place, target
        # Whether `tensorflow` will be that of v1 in this module.
        self.is_v1 = False

    def raw(self, node: cst.CSTNode) -> str | None:
        """The dotted name as imported; None if it is not imported or not certain."""
        parts: list[str] = []
        while isinstance(node, cst.Attribute):
            parts.append(node.attr.value)
            node = node.value
        if not isinstance(node, cst.Name):
            return None
        root = self._names.at(*self._place(node), node.value)
        return None if root is None else ".".join([root, *reversed(parts)])

    def of(self, node: cst.CSTNode) -> str | None:
        """The canonical dotted name, or None."""
        raw = self.raw(node)
        return None if raw is None else self.meant(canonical(raw))

    def meant(self, name: str) -> str:
        """A canonical name, as one of v1 where the module will mean that."""
        if not self.is_v1 or (self._target.has(name) and not self._target.has_v1(name)):
            return name
        return as_v1(name)


def dotted(node: cst.CSTNode) -> str | None:
    """The text of a chain of names, such as `tf.train.Server`; None for others."""
    parts: list[str] = []
    while isinstance(node, cst.Attribute):
        parts.append(node.attr.value)
        node = node.value
    if not isinstance(node, cst.Name):
        return None
    return ".".join([node.value, *reversed(parts)])


def imported_as(alias: cst.ImportAlias) -> str | None:
    """The name after `as`, or None."""
    if alias.asname is None or not isinstance(alias.asname.name, cst.Name):
        return None
    return alias.asname.name.value
