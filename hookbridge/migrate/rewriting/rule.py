"""What a rule of a rewrite is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import libcst as cst

if TYPE_CHECKING:
    from hookbridge.migrate.rewriting.context import Context


@dataclass(frozen=True)
class RewriteRule:
    """One way to change code.

    A rule must leave alone what it has written itself: a second rewrite changes
    nothing. It returns the node unchanged where it is not certain; a finding that is
    left gets a comment from the engine.

    Attributes:
      name: as `--only` and `--skip` take it, such as `device-functions`.
      summary: what it does, in a sentence.
      nodes: classes of the syntax tree (`libcst`) that it looks at.
      apply: called with the node of the old tree, the node as other rules and the
        changes inside of it have left it, and the context; returns what takes its
        place. Names and positions are asked of the old node. It is called once for
        each node of those classes, from the inner to the outer ones, on the thread
        that calls `rewrite`.
      codes: reason codes of the findings that it settles.
      words: nothing is done in a text that has none of these; empty for any text.
      option: the option that it needs ("native", "add_guests"); empty for none.
      prepare: called with the context once before each walk, on the same thread.
    """

    name: str
    summary: str
    nodes: tuple[type[cst.CSTNode], ...]
    apply: Callable[[Any, Any, Context], Any]
    codes: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    option: str = ""
    prepare: Callable[[Context], None] | None = None

    def concerns(self, text: str) -> bool:
        """Whether the text has one of the rule's words.

        Args:
          text: the code of a whole file.
        """
        return not self.words or any(word in text for word in self.words)
