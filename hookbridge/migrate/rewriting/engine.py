"""One walk over the syntax tree, on which every rule is asked at its nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import libcst as cst

from hookbridge.migrate.rewriting.context import Context
from hookbridge.migrate.rewriting.rule import RewriteRule


class Walk(cst.CSTTransformer):
    """Asks the rules, innermost nodes first, and writes their comments."""

    def __init__(self, rules: Sequence[RewriteRule], context: Context) -> None:
        super().__init__()
        self._context = context
        self._rules: dict[type[cst.CSTNode], list[RewriteRule]] = {}
        for rule in rules:
            for kind in rule.nodes:
                self._rules.setdefault(kind, []).append(rule)

    def on_leave(self, original_node: Any, updated_node: Any) -> Any:
        updated: Any = super().on_leave(original_node, updated_node)
        for rule in self._rules.get(type(original_node), ()):
            # An earlier rule may have replaced the node by another class, by several
            # nodes or by none.
            if isinstance(updated, rule.nodes):
                updated = rule.apply(original_node, updated, self._context)
        if isinstance(original_node, cst.Module):
            return self._context.imports.add(updated)
        comments = self._context.comments.get(original_node)
        return _with_comments(updated, comments) if comments else updated


def _with_comments(node: Any, comments: Sequence[str]) -> Any:
    """The statement with comment lines above it."""
    if isinstance(node, cst.FlattenSentinel):
        first, *rest = cast("Sequence[Any]", node)
        return cst.FlattenSentinel([_with_comments(first, comments), *rest])
    if not isinstance(node, cst.CSTNode):
        return node
    lines = [
        cst.EmptyLine(indent=True, comment=cst.Comment(comment)) for comment in comments
    ]
    above = [*node.leading_lines, *lines]  # type: ignore[attr-defined]
    return node.with_changes(leading_lines=above)
