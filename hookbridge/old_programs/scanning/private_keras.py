"""Imports of private modules of Keras: what a file reads of them decides."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from hookbridge.old_programs.reading.names.import_statements import (
    Import,
    canonical,
    imports,
)
from hookbridge.old_programs.reading.one_file.comments import has_mark
from hookbridge.old_programs.reading.one_file.modules import Module
from hookbridge.old_programs.reading.whole_programs.in_program import InProgram
from hookbridge.tf1_names.installed_names import missing_private
from hookbridge.tf1_names.syntax import is_below, root_of
from hookbridge.tf1_names.target import Target


class _Read(NamedTuple):
    """A name that a file reads by an import."""

    root: ast.Name
    is_guarded: bool  # whether the file can do without it
    is_written: bool  # whether a rule writes another name for it


def stays(
    imported: Import, module: Module, in_program: InProgram, target: Target
) -> bool:
    """Return whether an import of a private module of Keras has to stay as it is.

    It has to if a name that the file reads by it has no public name. What the file can
    do without does not count.

    Args:
      imported: the name that the import binds.
      module: the file.
      in_program: what its program says of it.
      target: the TensorFlow that it has to run on.
    """
    outcome = in_program.outcome(canonical(imported.full), target)
    if outcome is None or outcome.code != "KERAS_PRIVATE":
        return False
    reads = _reads(imported, module, in_program, target)
    return any(not (read.is_guarded or read.is_written) for read in reads)


def goes(
    imported: Import, module: Module, in_program: InProgram, target: Target
) -> bool:
    """Return whether an import of a removed module of Keras goes in a rewrite.

    It does if the file only reads names by it, and a rule writes each of them.

    Args:
      imported: the name that the import binds.
      module: the file.
      in_program: what its program says of it.
      target: the TensorFlow that it has to run on.
    """
    full = canonical(imported.full)
    outcome = in_program.outcome(full, target)
    if outcome is None or outcome.code != "KERAS_COPY":
        return False
    if not (
        missing_private(full, target).rest and may_go(imported, module, in_program)
    ):
        return False
    reads = list(_reads(imported, module, in_program, target))
    written = {read.root for read in reads if read.is_written}
    uses = {
        node
        for node in module.nodes
        if isinstance(node, ast.Name) and _is_bound_by(node, imported, module)
    }
    return bool(uses) and uses == written


def may_go(imported: Import, module: Module, in_program: InProgram) -> bool:
    """Return whether nothing needs, or asks to keep, the name of an import.

    A linter may be told that the import is as it has to be, and other files may have
    the name from this one.
    """
    is_shared = imported.bound in in_program.shared or imported.bound in module.said
    return not (is_shared or has_mark(imported.node, module.comments))


def imports_of(node: ast.expr | ast.stmt, name: str) -> Iterator[Import]:
    """Yield what a node imports under a canonical name."""
    return (part for part in imports(node) if canonical(part.full) == name)


def _reads(
    imported: Import, module: Module, in_program: InProgram, target: Target
) -> Iterator[_Read]:
    """Yield the names that a file reads by an import."""
    full, names = canonical(imported.full), module.names
    for node in module.nodes:
        if not isinstance(node, ast.Attribute):
            continue
        name, root = names.canonical(node), root_of(node)
        is_read = name is not None and name != full and is_below(name, full)
        if not (is_read and isinstance(root, ast.Name)):
            continue
        if _is_bound_by(root, imported, module):
            outcome = in_program.outcome(str(name), target)
            is_written = outcome is None or bool(outcome.replacement)
            yield _Read(root, id(node) in module.guarded, is_written)


def _is_bound_by(node: ast.Name, imported: Import, module: Module) -> bool:
    """Return whether a name is the one that an import binds."""
    if node.id != imported.bound:
        return False
    scopes = module.names.scopes
    return scopes.binding_scope(node) is scopes.import_scope(imported.node)
