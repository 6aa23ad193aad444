"""Functions of a program that AutoGraph converts keep their imports of TensorFlow.

AutoGraph reads the file again, where the imports are as the program has them.
"""

from __future__ import annotations

import ast
import functools

from hookbridge.ground import compat, patching
from hookbridge.old_programs.run import statements
from hookbridge.old_programs.run.restored import lookup_calls
from hookbridge.tf1_names.parsing import parse_source


def follow() -> None:
    """Give AutoGraph the functions of rewritten files as they run, from now on."""
    utils = compat.private("autograph_sources")
    plain = utils.getimmediatesource

    @functools.wraps(plain)
    def source(function: object) -> str:
        text: str = plain(function)
        space = getattr(function, "__globals__", ())
        is_ours = statements.HELPER in space or lookup_calls.HELPER in space
        return source_as_run(text) if is_ours else text

    patching.assign(utils, getimmediatesource=source)


def source_as_run(source: str) -> str:
    """Return the source of a function as it runs, with its imports looked up."""
    text = f"if True:\n{source}" if source[:1].isspace() else source
    plain = ast.unparse(parse_source(text))
    new = ast.unparse(statements.with_lookups(parse_source(text)))
    return source if new == plain else new.removeprefix("if True:\n")
