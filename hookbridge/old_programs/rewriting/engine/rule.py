"""What a rule of a rewrite is."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from hookbridge import errors
from hookbridge.old_programs.reading.one_file.modules import Module
from hookbridge.old_programs.reading.whole_programs.in_program import InProgram
from hookbridge.old_programs.rewriting.engine.context import Context

# Writing the comments is chosen by name like a rule, but is not one for the tree.
TODOS = "todos"


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
        overlap the first counts. The rules are applied again to the new text, in a
        few walks at most, while it has findings with the codes of one of them.
      codes: reason codes of the findings that it settles.
      prepare: called with the context once before each walk, on the same thread.
      before_scan: called with the module and its place in its program once before
        the scan of each walk, on the same thread; it may change what the module's
        names mean.
    """

    name: str
    summary: str
    nodes: tuple[type[ast.AST], ...]
    apply: Callable[[Any, Context], object]
    codes: tuple[str, ...] = ()
    prepare: Callable[[Context], None] | None = None
    before_scan: Callable[[Module, InProgram], None] | None = None


def chosen(
    rules: Sequence[RewriteRule], only: Collection[str], skip: Collection[str]
) -> tuple[list[RewriteRule], bool]:
    """Return the rules that `only` and `skip` leave, and if comments are written."""
    names = [*(rule.name for rule in rules), TODOS]
    for name in (*only, *skip):
        if name not in names:
            raise errors.InvalidArgumentError(
                f"Received the rule {name!r}; expected one of {', '.join(names)}."
            )
    choice = [n for n in names if (not only or n in only) and n not in skip]
    return [rule for rule in rules if rule.name in choice], TODOS in choice
