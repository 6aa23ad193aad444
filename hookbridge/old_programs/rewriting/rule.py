"""What a rule of a rewrite is."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hookbridge.old_programs.rewriting.context import Context


@dataclass(frozen=True)
class RewriteRule:
    """One way to change code.

    A rule must not change code that it has written itself: a second rewrite changes
    nothing. It changes nothing if it is not certain; a finding that is left gets a
    comment.

    Attributes:
      name: the name for `--only` and `--skip`, such as `old-arguments`.
      summary: what it does, in a sentence.
      nodes: classes of the syntax tree (`ast`) that it looks at.
      apply: called with a node and the context, whose `replace(name, node, text)`
        changes the text of a node. It is called once for each node of those classes,
        inner nodes first, on the thread that calls `rewrite`. Of two changes that
        overlap the first counts; the rules are asked again about the new text.
      codes: reason codes of the findings that it settles.
      prepare: called with the context once before each walk, on the same thread.
    """

    name: str
    summary: str
    nodes: tuple[type[ast.AST], ...]
    apply: Callable[[Any, Context], object]
    codes: tuple[str, ...] = ()
    prepare: Callable[[Context], None] | None = None
