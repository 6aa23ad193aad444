"""What a rewrite returns: the new text, and each edit of it."""

from __future__ import annotations

import difflib
from dataclasses import dataclass


@dataclass(frozen=True)
class Edit:
    """One place that a rule changed.

    Attributes:
      rule: the rule's name.
      line: 1-based line of the old text; an edit that another edit made possible has
        the line of the text after that one.
      before: the old code.
      after: the new code.
    """

    rule: str
    line: int
    before: str
    after: str


@dataclass(frozen=True)
class Todo:
    """One comment for a place that no rule could rewrite.

    Attributes:
      line: 1-based line of the new text that the comment stands above.
      code: reason code.
      reason: what is to be done.
    """

    line: int
    code: str
    reason: str


@dataclass(frozen=True)
class Rewritten:
    """The result of one rewrite.

    Attributes:
      before: the old text.
      source: the new text; the same object as `before` if there is nothing to do.
      edits: what was changed, by line.
      todos: what is left to a person, with comments in the new text.
    """

    before: str
    source: str
    edits: tuple[Edit, ...] = ()
    todos: tuple[Todo, ...] = ()

    @property
    def changed(self) -> bool:
        """Whether the new text differs from the old one."""
        return self.source != self.before

    def diff(self, name: str) -> str:
        """The change as a unified diff.

        Args:
          name: the file's name in the head of the diff.
        """
        lines = difflib.unified_diff(
            self.before.splitlines(keepends=True),
            self.source.splitlines(keepends=True),
            f"a/{name}",
            f"b/{name}",
        )
        return "".join(
            line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
            for line in lines
        )
