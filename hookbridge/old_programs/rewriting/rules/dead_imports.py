"""Imports of removed names; the names that they bind stay, and so does the code."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Sequence
from typing import NamedTuple

from hookbridge.old_programs.reading.names.import_statements import (
    Import,
    all_imports,
    canonical,
    imports,
)
from hookbridge.old_programs.reading.one_file.comments import has_mark
from hookbridge.old_programs.rewriting.engine.context import Context
from hookbridge.old_programs.rewriting.engine.needed_imports import module_of
from hookbridge.old_programs.rewriting.engine.rule import RewriteRule
from hookbridge.old_programs.scanning import private_keras
from hookbridge.tf1_names import contrib_names, old_keras
from hookbridge.tf1_names.installed_names import missing_private
from hookbridge.tf1_names.old_keras import KERAS
from hookbridge.tf1_names.outcome import Resolution
from hookbridge.tf1_names.removed_in_libraries import removed_part
from hookbridge.tf1_names.syntax import is_below

NAME = "dead-imports"
# What is below these is written by its whole name.
_RESTORED = ("hookbridge.contrib", "hookbridge.estimator.python")
# Below these no `from X import` works: Python's import system has no such modules.
_NO_MODULES = (
    "hookbridge.estimator.v1",
    "hookbridge.estimator.experimental",
    "hookbridge.estimator.export",
    *_RESTORED,
)
# Folders of TensorFlow's package hide these from Python's import system. The same
# modules are below `compat.v2`.
HIDDEN = ("tf.distribute", "tf.lite")


class NewImport(NamedTuple):
    """The statement that takes the place of one name of an import.

    Attributes:
      line: the statement; empty if the name goes.
      module: where it imports the name from, if it is `from module import item`.
      item: what it imports there.
    """

    line: str
    module: str = ""
    item: str = ""


_NOTHING = NewImport("")


def new_import(imported: Import, context: Context) -> NewImport | None:
    """Return what takes the place of one name of an import; None leaves it as it is.

    A name goes only if its import fails on the target and nothing asks for it.
    """
    if imported.bound == "*":
        return None
    written = canonical(imported.full)
    if imported.full in context.in_program.unused_removed:
        return _NOTHING if context.may_go(imported) else None
    become = _resolution(written, context)
    if become is None or _may_fail(imported, become, context):
        return None
    known = context.module, context.in_program, context.target
    if private_keras.stays(imported, *known):
        return None
    if written in context.in_program.unused and become.is_removed:
        return _NOTHING if context.may_go(imported) else None
    if isinstance(imported.node, ast.Import) and imported.alias.asname is None:
        return _plain(imported, become, context)
    return None if become.replacement == written else _bound(imported, become, context)


def _bound(imported: Import, become: Resolution, context: Context) -> NewImport | None:
    """Return what replaces an import of which the file uses the name that it binds."""
    is_restored = become.replacement.startswith(_RESTORED)
    is_absent = become.code == "KERAS_COPY" and bool(
        missing_private(canonical(imported.full), context.target).rest
    )
    is_dead = become.is_removed or is_restored or is_absent
    may_go = is_dead and context.may_go(imported)
    if may_go and _all_uses_are_renamed(imported, context):
        return _NOTHING
    name = become.replacement or _removed_module(imported, become, context)
    return _line(imported, name, context) if name else None


def _removed_module(imported: Import, become: Resolution, context: Context) -> str:
    """Return the name of a `tf.contrib` module in `hb.contrib.removed`, or empty.

    The module can be read there; using it raises.
    """
    meant = context.meant(canonical(imported.full))
    area = meant.removeprefix("tf.contrib.")
    is_module = area != meant and contrib_names.was_module(area)
    is_removed = become.code == "GONE" and is_module
    return f"{contrib_names.REMOVED}.{area}" if is_removed else ""


def _plain(imported: Import, become: Resolution, context: Context) -> NewImport | None:
    """Return what replaces `import a.b`, whose uses are renamed."""
    if imported.bound == "tensorflow":  # `import tensorflow.contrib.slim` binds it
        return _plain_tensorflow(imported, become, context)
    if imported.bound == KERAS and become.code in old_keras.CODES:
        whole = context.resolve(KERAS) or become
        return _line(imported, whole.replacement, context)
    full = imported.full
    is_module = "." not in full and removed_part(full) == full
    # Python removed a whole module.
    has_other = is_module and become.replacement
    return NewImport(f"import {become.replacement}") if has_other else None


def _plain_tensorflow(
    imported: Import, become: Resolution, context: Context
) -> NewImport | None:
    """Return what replaces `import tensorflow.a`, whose uses are renamed."""
    known = context.module, context.in_program, context.target
    is_written = become.is_removed or become.replacement
    if not (is_written or private_keras.goes(imported, *known)):
        return None  # the module is there, or a person has to look
    is_marked = has_mark(imported.node, context.module.comments)
    if _is_bound_above(imported, context) and not is_marked:
        return _NOTHING
    return NewImport("import tensorflow")


def _is_bound_above(imported: Import, context: Context) -> bool:
    """Return whether an import before this one, in the same block, binds its name."""
    block = context.parents[imported.node]
    if not isinstance(block, ast.Module | ast.FunctionDef):
        return False
    line = imported.node.lineno
    statements = (s for s in block.body if s.lineno < line)
    return any(above.bound == imported.bound for above in all_imports(statements))


def _may_fail(imported: Import, become: Resolution, context: Context) -> bool:
    """Return whether the program has another way when the import fails."""
    if id(imported.node) not in context.module.guarded:
        return False
    is_contrib = context.meant(canonical(imported.full)).startswith("tf.contrib")
    return is_contrib or become.code == "LOST_NAME"


def _resolution(written: str, context: Context) -> Resolution | None:
    """Return what becomes of an imported name, as meant or as written."""
    meant = context.meant(written)
    become = context.resolve(meant)
    if become is None and meant != written and not context.target.has(written):
        # `from tensorflow import app`, in a file that means TensorFlow 1.
        become = context.resolve(written)
    return become


def _line(imported: Import, name: str, context: Context) -> NewImport:
    """Return the statement that binds a name to its replacement."""
    bound, line = imported.bound, imported.node.lineno
    parent, _, attribute = name.rpartition(".")
    if hasattr(builtins, name):
        return _NOTHING if bound == name else NewImport(f"{bound} = {name}")
    if not parent:
        return NewImport(f"import {name}" + ("" if bound == name else f" as {bound}"))
    root, dot, inside = parent.partition(".")
    if parent.startswith(_NO_MODULES):
        package = context.imports.here("hookbridge", line)
        return NewImport(f"{bound} = {package}{dot}{inside}.{attribute}")
    item = attribute if bound == attribute else f"{attribute} as {bound}"
    if any(is_below(parent, hidden) for hidden in HIDDEN):
        inside = f"compat.v2.{inside}"
    module = f"{module_of(root)}{dot}{inside}"
    return NewImport(f"from {module} import {item}", module, item)


def _all_uses_are_renamed(imported: Import, context: Context) -> bool:
    """Return whether nothing needs an imported name once its uses are renamed."""
    names, is_used = context.module.names, False
    scope = names.scopes.import_scope(imported.node)
    for node in context.module.nodes:
        if not (isinstance(node, ast.Name) and node.id == imported.bound):
            continue
        if names.scopes.binding_scope(node) is scope:
            is_used = True
            if not context.is_renamed(node):
                return False
    return is_used


def prepare(context: Context) -> None:
    """Note which names keep their meaning, so that no rule renames their uses."""
    bound = context.imports.bound
    for import_ in all_imports(context.module.nodes):
        new, full = new_import(import_, context), canonical(import_.full)
        if new is None:
            is_guarded = id(import_.node) in context.module.guarded
            if is_guarded and full.startswith("tf.contrib"):
                context.keep(import_)
        elif not new.line:
            bound.pop(import_.bound, None)
        elif new.line != f"import {import_.bound}":
            _keep(import_, new, context)


def _keep(imported: Import, line: NewImport, context: Context) -> None:
    """Note what a name means once another statement imports it."""
    bound = context.imports.bound
    meant = context.meant(canonical(imported.full))
    new = context.resolve(meant)
    if isinstance(imported.node, ast.Import) and imported.alias.asname is None:
        bound.pop(imported.bound, None)
        if imported.bound == KERAS:
            bound[KERAS] = canonical(f"{line.module}.{KERAS}")
        else:
            module = line.line.removeprefix("import ")
            bound[module] = module
        return
    context.keep(imported)
    if imported.bound in bound:
        bound[imported.bound] = meant if new is None else new.replacement or meant


def apply(node: ast.Import | ast.ImportFrom, context: Context) -> None:
    """Replace one import."""
    names = [new_import(import_, context) for import_ in imports(node)]
    new = {index: line for index, line in enumerate(names) if line is not None}
    if not new:
        return
    modules = {line.module for line in new.values()}
    is_one = len(modules) == 1 and all(modules) and len(new) == len(names)
    if is_one and isinstance(node, ast.ImportFrom):
        items = [line.item for line in new.values()]
        context.replace(
            NAME, node, _renamed_import(node, modules.pop(), items, context)
        )
    else:
        context.replace_import(NAME, node, {index: new[index].line for index in new})


def _renamed_import(
    node: ast.ImportFrom, module: str, items: Sequence[str], context: Context
) -> str:
    """Return the text of an import whose names another module has."""
    text, (first, end) = context.text, context.span(node)
    head = text[first : context.span(node.names[0])[0]]
    parts = [re.sub(r"(?<=from)(\s+)\S+", rf"\g<1>{module}", head, count=1)]
    for alias, item, following in zip(
        node.names, items, [*node.names[1:], None], strict=True
    ):
        after = context.span(alias)[1]
        parts += [
            item if item != ast.unparse(alias) else context.code(alias),
            text[after : end if following is None else context.span(following)[0]],
        ]
    return "".join(parts)


RULE = RewriteRule(
    name=NAME,
    summary="Imports of removed names import their current equivalents.",
    nodes=(ast.Import, ast.ImportFrom),
    apply=apply,
    prepare=prepare,
)
