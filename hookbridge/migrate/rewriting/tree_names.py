"""Which TensorFlow name an expression of the syntax tree means."""

from __future__ import annotations

from collections.abc import Mapping

import libcst as cst
from libcst.metadata import (
    GlobalScope,
    MetadataWrapper,
    QualifiedName,
    QualifiedNameSource,
    ScopeProvider,
)

from hookbridge.migrate.names import canonical

_V1 = "tf.compat.v1"


class TreeNames:
    """Names of one module, by its scopes, imports and plain assignments.

    Attributes:
      aliases: `{name: dotted name as imported}` of assignments at module level.
      alias_places: `{name: number of the statement that assigns it}`.

    Args:
      wrapper: the module with its metadata.
    """

    def __init__(self, wrapper: MetadataWrapper) -> None:
        self._scopes = wrapper.resolve(ScopeProvider)
        self._qualified: dict[cst.CSTNode, set[QualifiedName]] = {}
        self._v1_root = ""  # the name of an import that will be one of v1
        self.aliases: dict[str, str] = {}
        self.alias_places: dict[str, int] = {}
        self._alias_roots: dict[str, str] = {}
        self._find_aliases(wrapper.module)

    def _find_aliases(self, module: cst.Module) -> None:
        """Notes `v1 = tf.compat.v1` and the like, at module level."""
        for number, statement in enumerate(module.body):
            if not isinstance(statement, cst.SimpleStatementLine):
                continue
            for small in statement.body:
                if (
                    isinstance(small, cst.Assign)
                    and len(small.targets) == 1
                    and isinstance(small.targets[0].target, cst.Name)
                    and isinstance(small.value, cst.Attribute | cst.Name)
                    and (raw := self.raw(small.value)) is not None
                    and raw.startswith(("tensorflow", "tf_slim"))
                    and self._is_single(small.targets[0].target)
                ):
                    name = small.targets[0].target.value
                    self.aliases[name] = raw
                    self.alias_places[name] = number
                    self._alias_roots[name] = (dotted(small.value) or "").split(".")[0]

    def _is_single(self, node: cst.Name) -> bool:
        scope = self._scopes.get(node)
        return isinstance(scope, GlobalScope) and len(list(scope[node.value])) == 1

    def treat_as_v1(self, root: str) -> None:
        """From now on, names below the import `root` are names of `tf.compat.v1`."""
        self._v1_root = root

    def _names(self, node: cst.CSTNode) -> set[QualifiedName]:
        """The qualified names that a node may mean.

        libcst's own provider would walk over the tree two more times.
        """
        if node not in self._qualified:
            scope = self._scopes.get(node)
            found = scope.get_qualified_names_for(node) if scope else ()
            self._qualified[node] = set(found)
        return self._qualified[node]

    def raw(self, node: cst.CSTNode) -> str | None:
        """The dotted name as imported; None if it is not imported or not certain."""
        chain = dotted(node)
        if chain is None:
            return None
        names = self._names(node)
        imported = {n.name for n in names if n.source is QualifiedNameSource.IMPORT}
        if len(imported) > 1:
            # `try: import tensorflow.compat.v1 as tf` and its fallback.
            v1 = [n for n in imported if n.startswith("tensorflow.compat.v1")]
            imported = set(v1) if len(v1) == 1 else set()
        if len(imported) == 1:
            return imported.pop()
        first, _, rest = chain.partition(".")
        local = {n.name for n in names if n.source is QualifiedNameSource.LOCAL}
        if local == {chain} and first in self.aliases:
            return f"{self.aliases[first]}.{rest}" if rest else self.aliases[first]
        return None

    def of(self, node: cst.CSTNode) -> str | None:
        """The canonical dotted name, or None."""
        raw = self.raw(node)
        if raw is None:
            return None
        name = canonical(raw)
        root = (dotted(node) or "").partition(".")[0]
        if self._v1_root and self._root_of(root) == self._v1_root:
            return as_v1(name)
        return name

    def _root_of(self, name: str) -> str:
        """The imported name behind an alias, or behind an alias of an alias."""
        while name in self._alias_roots:
            name = self._alias_roots[name]
        return name


def as_v1(name: str) -> str:
    """A name of `tf` as the name of `tf.compat.v1`; other names unchanged."""
    root, _, rest = name.partition(".")
    if root != "tf" or rest.startswith(("compat.", "contrib.")) or rest == "contrib":
        return name
    return f"{_V1}.{rest}" if rest else _V1


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


def bindings(module: cst.Module) -> Mapping[str, str]:
    """`{name: dotted}` of the imports at the module's top level, also inside `try`."""
    found: dict[str, str] = {}
    blocks: list[cst.CSTNode] = [module]
    while blocks:
        block = blocks.pop(0)
        for statement in getattr(block, "body", ()):
            if isinstance(statement, cst.SimpleStatementLine):
                for small in statement.body:
                    found.update(_bound(small))
            elif isinstance(statement, cst.Try | cst.If):
                blocks.append(statement.body)
    return found


def _bound(small: cst.BaseSmallStatement) -> dict[str, str]:
    if isinstance(small, cst.Import):
        found = {}
        for alias in small.names:
            name = dotted(alias.name) or ""
            asname = imported_as(alias)
            found[asname or name.partition(".")[0]] = (
                name if asname else name.partition(".")[0]
            )
        return found
    if (
        isinstance(small, cst.ImportFrom)
        and small.module is not None
        and not small.relative
        and not isinstance(small.names, cst.ImportStar)
    ):
        module = dotted(small.module)
        return {
            imported_as(alias) or str(alias.name.value): f"{module}.{alias.name.value}"
            for alias in small.names
            if isinstance(alias.name, cst.Name)
        }
    return {}
