"""Starred imports of a removed module, or of one with removed names.

A file names what it uses of them; what becomes of these names is for other rules.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from hookbridge.old_programs.reading.names import starred
from hookbridge.old_programs.reading.names.import_statements import canonical
from hookbridge.old_programs.reading.one_file.comments import has_mark
from hookbridge.old_programs.rewriting.engine.context import Context
from hookbridge.old_programs.rewriting.engine.rule import RewriteRule
from hookbridge.tf1_names.outcome import Resolution

NAME = "starred-imports"


def apply(node: ast.ImportFrom, context: Context) -> None:
    """Replace one import, or put the names that it no longer gives behind."""
    module = node.module or ""
    if not _is_star(node) or not starred.is_followed(module):
        return
    module_name = canonical(module)
    outcome = context.resolve(context.meant(module_name))
    names = sorted(_needed_names(module, context))
    removed = [name for name in names if _is_removed(f"{module_name}.{name}", context)]
    if outcome is None or outcome.code == "PRIVATE":
        if removed:
            context.replace_import(NAME, node, {}, [_line(module, removed)])
        return
    if _is_guarded(node, outcome, context):
        return
    if names:
        context.replace_import(NAME, node, {0: _line(module, names)})
    elif not (
        _may_be_for_others(module, context) or has_mark(node, context.module.comments)
    ):
        context.replace_import(NAME, node, {0: ""})


def _is_star(node: ast.ImportFrom) -> bool:
    """Return whether it is `from module import *`, with the module's full name."""
    return node.level == 0 and [alias.name for alias in node.names] == ["*"]


def _needed_names(module: str, context: Context) -> Iterator[str]:
    """Yield the names of a starred module that files import by it."""
    from_stars = context.module.names.given
    of_module = [n for n, from_star in from_stars.items() if from_star.star == module]
    bare = set(_bare(context, of_module))
    taken = {n for n in context.in_program.taken if starred.gives(module, n)}
    yield from bare | (taken - set(from_stars))


def _bare(context: Context, names: Iterable[str]) -> Iterator[str]:
    """Yield the names with a use that no rule renames, as it does `contrib.slim`."""
    wanted = set(names)
    names_read = (n for n in context.module.nodes if isinstance(n, ast.Name))
    for node in names_read:
        if node.id in wanted and not context.is_renamed(node):
            yield node.id


def _is_removed(name: str, context: Context) -> bool:
    """Return whether the star of a module that is there no longer gives a name."""
    outcome = context.resolve(context.meant(name))
    return (
        outcome is not None and outcome.code != "PRIVATE" and bool(outcome.replacement)
    )


def _is_guarded(node: ast.ImportFrom, outcome: Resolution, context: Context) -> bool:
    """Return whether the program has another way when the import fails."""
    is_guarded = id(node) in context.module.guarded
    return is_guarded and outcome.code in ("CONTRIB", "GONE", "LOST_NAME")


def _may_be_for_others(module: str, context: Context) -> bool:
    """Return whether files that were not read may have names from a star.

    All uses in files that were read have other names by now.
    """
    from_stars = context.module.names.given.values()
    is_used = any(from_star.star == module for from_star in from_stars)
    return context.in_program.is_main and not (context.in_program.is_run or is_used)


def _line(module: str, names: Iterable[str]) -> str:
    return f"from {module} import {', '.join(names)}"


RULE = RewriteRule(
    name=NAME,
    summary="Starred imports of removed modules name what the file uses.",
    nodes=(ast.ImportFrom,),
    apply=apply,
)
