"""Python's parser, without what it warns of in old code."""

from __future__ import annotations

import ast
import warnings


def parse_source(source: str | bytes) -> ast.Module:
    """Return the tree of a source, which may have escapes that newer Pythons warn of.

    Raises:
      SyntaxError: it is not Python.
      ValueError: it has a null byte, before Python 3.12.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(source)
