"""Comments of a text, and the marks for linters and type checkers among them."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator, Sequence
from typing import NamedTuple

# Tools that read comments: a line that has one of these is as its author wants it.
_MARK = re.compile(
    r"\b(?:noqa|nopep8|nosec|nolint|noinspection)\b"
    r"|\b(?:flake8|fmt|isort|lint|mypy|pragma|pyflakes|pylint|pyright|ruff|type|yapf)"
    r": *\w|\bpyre-\w",
    re.I,
)
# The same for the lines below a comment that has a line of its own.
_UNUSED = re.compile(r"\b(?:unused-import|W0611|PyUnresolvedReferences)\b")
_WHOLE_FILE = re.compile(r"\b(?:flake8|ruff): *noqa\b|\bpylint: *skip-file\b", re.I)


class Comment(NamedTuple):
    """One comment.

    Attributes:
      line: its 1-based line.
      column: the number of characters before it in its line.
      text: what it says, with its `#`.
      is_alone: whether nothing else stands in its line.
    """

    line: int
    column: int
    text: str
    is_alone: bool


def comments_in(text: str) -> Iterator[Comment]:
    """Yield the comments of a text that Python can parse.

    Raises:
      ValueError: Python's `tokenize` cannot read it.
    """
    if "#" not in text:
        return
    lines = io.StringIO(text, newline="")
    try:
        for token in tokenize.generate_tokens(lines.readline):
            if token.type == tokenize.COMMENT:
                line, column = token.start
                is_alone = not token.line[:column].strip()
                yield Comment(line, column, token.string, is_alone)
    except (tokenize.TokenError, SyntaxError) as e:
        raise ValueError(f"its comments cannot be read: {e}") from e


def is_mark(comment: str) -> bool:
    """Return whether a comment speaks to a linter or a type checker."""
    return bool(_MARK.search(comment))


def has_mark(node: ast.stmt, comments: Sequence[Comment]) -> bool:
    """Return whether a comment tells a linter to accept a statement.

    Args:
      node: the statement.
      comments: those of its file.
    """
    end = node.end_lineno or node.lineno
    is_off = False
    for comment in comments:
        if comment.line > end:
            break
        if _WHOLE_FILE.search(comment.text):
            return True
        if comment.line >= node.lineno and is_mark(comment.text):
            return True
        if comment.is_alone and _UNUSED.search(comment.text):
            is_off = "enable" not in comment.text
    return is_off
