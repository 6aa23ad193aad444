"""Imports of private modules of Keras that stay: what a file reads of them decides."""

from __future__ import annotations

import ast

from hookbridge.old_programs.reading.import_statements import (
    Import,
    canonical,
    imports,
)
from hookbridge.old_programs.reading.modules import Module
from hookbridge.tf1_names.resolution import resolve
from hookbridge.tf1_names.syntax import is_below, root_of
from hookbridge.tf1_names.target import Target


def stays(imported: Import, module: Module, target: Target) -> bool:
    """Return whether an import of a private module of Keras has to stay as it is.

    It has to if a name that the file reads by it has no public name. What the file can
    do without does not count.

    Args:
      imported: the name that the import binds.
      module: the file.
      target: the TensorFlow that it has to run on.
    """
    full, names = canonical(imported.full), module.names
    outcome = resolve(full, target)
    if outcome is None or outcome.code != "KERAS_PRIVATE":
        return False
    scope = names.scopes.import_scope(imported.node)
    for node in module.nodes:
        if not isinstance(node, ast.Attribute) or id(node) in module.guarded:
            continue
        name, root = names.canonical(node), root_of(node)
        is_read = name is not None and name != full and is_below(name, full)
        if not (is_read and isinstance(root, ast.Name)):
            continue
        if names.scopes.binding_scope(root) is scope and root.id == imported.bound:
            become = resolve(str(name), target)
            if become is not None and not become.replacement:
                return True
    return False


def is_import_that_stays(
    node: ast.expr | ast.stmt, name: str, module: Module, target: Target
) -> bool:
    """Return whether a node is such an import of a name."""
    return any(
        canonical(imported.full) == name and stays(imported, module, target)
        for imported in imports(node)
    )
