"""What a rewrite returns: the new text with comments, and each edit of it."""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass

from hookbridge.old_programs.reading.one_file.modules import Module, split_lines
from hookbridge.old_programs.scanning.findings import Finding

MARK = "# TODO(hookbridge):"
# A rewritten file reads the true version under `hookbridge run`, too.
_SAME = {"VERSION_REFUSED": "VERSION_CHECK"}


@dataclass(frozen=True)
class Edit:
    """One place that a rule changed."""

    rule: str
    # 1-based line of the old text; an edit that another edit made possible has the line
    # of the text after that one.
    line: int
    before: str
    after: str


@dataclass(frozen=True)
class Todo:
    """One comment for a place that no rule could rewrite."""

    line: int  # 1-based line of the new text that the comment stands above
    code: str
    reason: str  # what is to be done


@dataclass(frozen=True)
class Rewritten:
    """The result of one rewrite.

    Attributes:
      before: the old text.
      source: the new text; equal to `before` if there is nothing to do.
      edits: what was changed, by line.
      todos: what is left to a person, with comments in the new text.
    """

    before: str
    source: str
    edits: tuple[Edit, ...] = ()
    todos: tuple[Todo, ...] = ()

    @property
    def changed(self) -> bool:
        """Return whether the new text differs from the old one."""
        return self.source != self.before

    def diff(self, name: str) -> str:
        """Return the change as a unified diff.

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


def comment(code: str, reason: str) -> str:
    """Return the line that says what is to be done.

    Args:
      code: the code of the finding.
      reason: the sentence behind it.
    """
    return f"{MARK} {code} {reason}"


def with_comments(module: Module, findings: Iterable[Finding]) -> str:
    """Return the text of a module with a comment above each finding."""
    lines = split_lines(module.text)
    wanted: dict[int, list[str]] = {}
    starts: list[int] = []
    for finding in findings:
        if not finding.rewrite:
            continue
        starts = starts or _starts(module.nodes)
        found_at = module.line(finding.cell, finding.line)
        line = max((s for s in starts if s <= found_at), default=min(starts))
        way = f" -> {finding.way_out}" if finding.way_out else ""
        reason = f"{finding.name}: {finding.message}{way}"
        comments = wanted.setdefault(line, [])
        if (new_comment := comment(finding.code, reason)) not in comments:
            comments.append(new_comment)
    for line in sorted(wanted, reverse=True):
        index = line - 1
        indent = lines[index][: len(lines[index]) - len(lines[index].lstrip(" \t\f"))]
        newline = re.search(r"[\r\n]*$", lines[index])
        end = (newline[0] if newline else "") or "\n"
        existing = _comments_above(lines, index)
        fresh = [new for new in wanted[line] if _key(new) not in existing]
        lines[index:index] = [f"{indent}{new}{end}" for new in fresh]
    return "".join(lines)


def comments_of(text: str) -> tuple[Todo, ...]:
    """Return the comments of a text."""
    todos = []
    for number, line in enumerate(split_lines(text), start=1):
        mark, _, said = line.strip().partition(MARK)
        if said and not mark:
            code, _, reason = said.strip().partition(" ")
            todos.append(Todo(number, code, reason))
    return tuple(todos)


def _starts(nodes: Iterable[ast.AST]) -> list[int]:
    """Return the first lines of statements, decorators included."""
    lines = []
    for node in nodes:
        if isinstance(node, ast.stmt):
            above = getattr(node, "decorator_list", [])
            lines.append(min([node.lineno, *(d.lineno for d in above)]))
    return lines


def _key(comment: str) -> tuple[str, str]:
    """Return how to know a comment again: by its code, and the last part of the name.

    The name's module may have another name once other files are rewritten.
    """
    code, _, reason = comment.removeprefix(MARK).strip().partition(" ")
    return _SAME.get(code, code), reason.partition(": ")[0].rpartition(".")[2]


def _comments_above(lines: list[str], index: int) -> set[tuple[str, str]]:
    keys = set()
    while index > 0 and lines[index - 1].lstrip().startswith("#"):
        index -= 1
        keys.add(_key(lines[index].strip()))
    return keys
