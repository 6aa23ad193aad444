"""Parts of a text, and what is written in their place."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

from hookbridge.old_programs.reading.one_file.modules import Module


class TextChanges:
    """The changes of one module's text; places in it are counted in characters.

    Attributes:
      newline: how its lines end.
    """

    def __init__(self, module: Module) -> None:
        self._module = module
        self._text = module.text
        self._starts = [0, *accumulate(map(len, module.lines))]
        self._changes: list[tuple[int, int, str]] = []
        self.newline: str = "\r\n" if "\r\n" in module.text else "\n"

    def span(self, node: Any) -> tuple[int, int]:
        """Return where a node begins and ends."""
        first = self._offset(node.lineno, node.col_offset)
        return first, self._offset(node.end_lineno, node.end_col_offset)

    def _offset(self, line: int, column: int) -> int:
        return self._starts[line - 1] + self._module.column(line, column) - 1

    def lines_of(self, node: Any) -> tuple[int, int]:
        """Return where the first line of a node begins, and its last line ends."""
        return self._starts[node.lineno - 1], self._starts[node.end_lineno or 0]

    def comments(self, span: tuple[int, int]) -> list[str]:
        """Return the comments in a part of the text."""
        first, end = span
        if "#" not in self._text[first:end]:
            return []
        return [
            comment.text
            for comment in self._module.comments
            if first <= self._starts[comment.line - 1] + comment.column < end
        ]

    def has_any(self, span: tuple[int, int]) -> bool:
        """Return whether a part of the text overlaps one that is changed."""
        first, end = span
        return any(first < e and f < end for f, e, _ in self._changes)

    def add(self, first: int, end: int, text: str) -> None:
        """Write another text in the place of a part."""
        self._changes.append((first, end, text))

    def add_line_above(self, node: Any, text: str) -> None:
        """Write a line above the first one of a node, once."""
        start, _ = self.lines_of(node)
        line = self._module.lines[node.lineno - 1]
        indent = line[: len(line) - len(line.lstrip())]
        change = start, start, f"{indent}{text}{self.newline}"
        if change not in self._changes:
            self._changes.append(change)

    def result(self) -> str:
        """Return the text with all changes."""
        parts, done = [], 0
        for first, end, text in sorted(self._changes, key=lambda change: change[:2]):
            parts += [self._text[done:first], text]
            done = end
        return "".join([*parts, self._text[done:]])
