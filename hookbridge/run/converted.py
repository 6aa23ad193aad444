"""Functions of a program that AutoGraph converts keep their imports of TensorFlow.

AutoGraph reads the file again, where the imports are as the program has them.
"""

from __future__ import annotations

import ast
import functools
from typing import Any

import tensorflow as tf

from hookbridge import compat, patching
from hookbridge.run import statements


def follow() -> None:
    """From now on AutoGraph gets functions of rewritten files as they run."""
    utils = compat.private("autograph_sources")
    plain = utils.getimmediatesource

    @functools.wraps(plain)
    def source(function: Any) -> str:
        text: str = plain(function)
        is_ours = statements.HELPER in getattr(function, "__globals__", ())
        return rewritten(text) if is_ours else text

    patching.assign(utils, getimmediatesource=source)
    for name in ("module", "root", "name", "star"):
        whole = tf.autograph.experimental.do_not_convert(
            getattr(statements.Imports, name)
        )
        patching.assign(statements.Imports, **{name: whole})


def rewritten(source: str) -> str:
    """The source of a function with its imports answered, each in its own lines."""
    head = "if True:\n" if source[:1].isspace() else ""
    lines = (head + source).splitlines(keepends=True)
    for node, new in reversed(statements.changes(ast.parse(head + source))):
        first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
        before, after = (
            lines[first][: node.col_offset],
            lines[last][node.end_col_offset :],
        )
        answers = "; ".join(ast.unparse(ast.fix_missing_locations(m)) for m in new)
        lines[first] = before + answers + after
        lines[first + 1 : last + 1] = ["\n"] * (last - first)
    return "".join(lines).removeprefix(head)
