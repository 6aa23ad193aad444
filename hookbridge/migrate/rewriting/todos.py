"""Comments above the statements that no rule could rewrite."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from hookbridge.migrate.findings import Finding
from hookbridge.migrate.rewriting.results import Todo

MARK = "# TODO(hookbridge):"
# The code runs on the target as it is, or hookbridge carries it.
_SILENT = frozenset({"fine", "bridge"})
# A name of `tensorflow.python` is private but may exist. A file that needs v1 behaviour
# may need no line for it: the main program may choose it, or call the file in a graph.
_UNCERTAIN = frozenset({"PRIVATE", "V1_BEHAVIOUR"})
_LINES = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


def comment(code: str, reason: str) -> str:
    """The line that says what is to be done."""
    return f"{MARK} {code} {reason}"


def is_left(finding: Finding) -> bool:
    """Whether a person has to do something about a finding."""
    return finding.verdict not in _SILENT and finding.code not in _UNCERTAIN


def add(text: str, findings: Iterable[Finding]) -> str:
    """The text with a comment above each statement that has a finding.

    Args:
      text: Python code.
      findings: what a scan of this text found.
    """
    tree = ast.parse(text)
    lines = _LINES.findall(text)
    wanted: dict[int, list[str]] = {}
    starts = _starts(tree)
    guarded = _guarded(tree)
    for finding in findings:
        if not is_left(finding) or finding.line in guarded:
            continue
        line = max((s for s in starts if s <= finding.line), default=min(starts))
        way = f" -> {finding.way_out}" if finding.way_out else ""
        reason = f"{finding.name}: {finding.message}{way}"
        held = wanted.setdefault(line, [])
        if (one := comment(finding.code, reason)) not in held:
            held.append(one)
    for line in sorted(wanted, reverse=True):
        place = line - 1
        indent = lines[place][: len(lines[place]) - len(lines[place].lstrip(" \t\f"))]
        newline = re.search(r"[\r\n]*$", lines[place])
        end = (newline[0] if newline else "") or "\n"
        there = _comments_above(lines, place)
        fresh = [one for one in wanted[line] if one not in there]
        lines[place:place] = [f"{indent}{one}{end}" for one in fresh]
    return "".join(lines)


def found(text: str) -> tuple[Todo, ...]:
    """The comments of a text."""
    todos = []
    for number, line in enumerate(_LINES.findall(text), start=1):
        mark, _, rest = line.strip().partition(MARK)
        if rest and not mark:
            code, _, reason = rest.strip().partition(" ")
            todos.append(Todo(number, code, reason))
    return tuple(todos)


def _starts(tree: ast.Module) -> list[int]:
    """First lines of statements, decorators included."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt):
            above = getattr(node, "decorator_list", [])
            found.append(min([node.lineno, *(d.lineno for d in above)]))
    return found


def _guarded(tree: ast.Module) -> set[int]:
    """Lines of imports whose failure the program handles."""
    found: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Try) and any(_catches(h) for h in node.handlers):
            for inner in node.body:
                if isinstance(inner, ast.Import | ast.ImportFrom):
                    found.update(range(inner.lineno, (inner.end_lineno or 0) + 1))
    return found


def _catches(handler: ast.ExceptHandler) -> bool:
    text = "" if handler.type is None else ast.unparse(handler.type)
    return not text or "ImportError" in text or "ModuleNotFound" in text


def _comments_above(lines: list[str], place: int) -> set[str]:
    found = set()
    while place > 0 and lines[place - 1].lstrip().startswith("#"):
        place -= 1
        found.add(lines[place].strip())
    return found
