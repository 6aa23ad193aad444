"""The import of TensorFlow in a file that means TensorFlow 1."""

from __future__ import annotations

import ast
import re

from hookbridge.old_programs.reading.names.import_statements import (
    canonical,
    loaded_module,
)
from hookbridge.old_programs.reading.one_file.modules import Module
from hookbridge.old_programs.reading.whole_programs.in_program import InProgram
from hookbridge.old_programs.rewriting.engine.context import Context
from hookbridge.old_programs.rewriting.engine.rule import RewriteRule
from hookbridge.tf1_names.private_names import FILES
from hookbridge.tf1_names.resolution import is_of_no_version, resolve
from hookbridge.tf1_names.syntax import is_below, root_of

NAME = "v1-imports"
_V1 = "tensorflow.compat.v1"
# The other modules stay what they are.
_OTHERS = ("tf.compat.v1", "tf.contrib", "tf.examples", *FILES)
# Parts of `tensorflow` that are in no other place.
_PARTS = ("compat", "python", "contrib", "core")
_WHOLE = ("tensorflow",)


def inherit_v1(module: Module, in_program: InProgram) -> None:
    """Let names of TensorFlow from other files of the program be those of v1."""
    if not in_program.targets_tf1:
        return
    names = module.names
    for name, value in names.through.items():
        names.through[name] = _as_v1(value)
    for name, value in names.bound.items():
        from_star = names.given.get(name)
        is_here = name in names.bound_here and name not in names.handed_on
        is_own = is_here if from_star is None else from_star.star
        if not is_own:
            names.bound[name] = _as_v1(value)


def _as_v1(value: str) -> str:
    """Return a name that an import gives, as one of v1."""
    root, _, inside = value.partition(".")
    if root != "tensorflow" or inside.partition(".")[0] in _PARTS:
        return value
    return f"{_V1}.{inside}" if inside else _V1


def prepare(context: Context) -> None:
    """Decide first, because all other rules depend on what a name means."""
    bound, names = context.imports.bound, context.module.names
    context.imports.is_v1 = (
        context.in_program.targets_tf1
        and names.scopes.module not in names.scopes.whole_scopes
    )
    if context.imports.is_v1:
        elsewhere = {
            n: v
            for n, v in names.bound.items()
            if n not in names.bound_here and n not in names.given
        }
        bound.update(elsewhere)  # another file of the program has them
        bound.update({name: _V1 for name, value in bound.items() if value in _WHOLE})


def apply(
    node: ast.Import | ast.ImportFrom | ast.Attribute | ast.Call, context: Context
) -> None:
    """Change an import, or a name that means another thing without the change."""
    if isinstance(node, ast.Attribute) and context.in_program.targets_tf1:
        _attribute(node, context)
    if isinstance(node, ast.Import) and context.in_program.targets_tf1:
        _import(node, context)
    elif isinstance(node, ast.ImportFrom) and context.imports.is_v1:
        _import_from(node, context)
    elif isinstance(node, ast.Call) and context.imports.is_v1:
        _load(node, context)


def _import(node: ast.Import, context: Context) -> None:
    """Import v1 in place of the modules that a file imports."""
    names = context.module.names
    is_whole = names.scopes.import_scope(node) in names.scopes.whole_scopes
    for alias in node.names:
        if new := _module(alias, is_whole or not context.imports.is_v1, context):
            context.replace(NAME, alias, new)


def _module(alias: ast.alias, is_whole: bool, context: Context) -> str:
    """Return what an import of a module imports today; empty if it stays.

    With `is_whole`, `tensorflow` itself has to stay.
    """
    name = canonical(alias.name)
    if alias.name not in _WHOLE:
        is_in_both = context.target.has(name) and context.target.has_v1(name)
        if not (_has_versions(alias.name) and is_in_both):
            return ""
    if alias.asname:
        is_kept = alias.name in _WHOLE and not context.imports.is_v1
        new = alias.name.replace("tensorflow", _V1, 1)
        return "" if is_kept else f"{new} as {alias.asname}"
    if is_whole:
        return "" if alias.name in _WHOLE else "tensorflow"
    return f"{_V1} as tensorflow"


def _import_from(node: ast.ImportFrom, context: Context) -> None:
    """Import from v1 what both have; what was removed is left to `dead-imports`."""
    module = "" if node.level else node.module or ""
    if not (
        _has_versions(module)
        and all(_is_in_v1(module, alias.name, context) for alias in node.names)
    ):
        return
    name = module.replace("tensorflow", _V1, 1)
    if written := re.match(rf"from\s+({re.escape(module)})\s", context.code(node)):
        first, _ = context.span(node)
        span = first + written.start(1), first + written.end(1)
        context.change(NAME, node, span, name)


def _has_versions(module: str) -> bool:
    """Return whether v1 may have another version of a module of TensorFlow."""
    is_compat = is_below(module, "tensorflow.compat")
    name = canonical(module)
    return is_below(name, "tf") and not (is_compat or name.startswith(_OTHERS))


def _is_in_v1(module: str, name: str, context: Context) -> bool:
    """Return whether v1 has the same name, and it is there."""
    if name == "*" and context.target.has_v1(canonical(module)):
        return True  # a star gives what TensorFlow 1 had
    full = canonical(f"{module}.{name}")
    outcome = resolve(full, context.target)
    if outcome is not None and outcome.code == "MISSING":
        return is_of_no_version(full)  # the program meant that of version 1
    if not (context.target.has(full) and context.target.has_v1(full)):
        return False
    return resolve(context.meant(full), context.target) is None


def _load(node: ast.Call, context: Context) -> None:
    """Import v1 by a call: `import_module("tensorflow.compat.v1")`."""
    module = loaded_module(node)
    if not (_has_versions(module) and context.target.has_v1(canonical(module))):
        return
    name = module.replace("tensorflow", _V1, 1)
    more = ', fromlist=["v1"]' if ast.unparse(node.func) == "__import__" else ""
    context.replace(NAME, node, f'{context.code(node.func)}("{name}"{more})')


def _attribute(node: ast.Attribute, context: Context) -> None:
    """Write an outermost dotted name that the program reads as it means it."""
    name, root = context.name(node), root_of(node)
    is_read = isinstance(node.ctx, ast.Load) and not context.is_part(node)
    if name is None or not isinstance(root, ast.Name) or not is_read:
        return
    is_whole = context.module.names.scopes.is_whole(root)
    change = _name_of_tf1 if is_whole or not context.imports.is_v1 else _name_of_tf2
    change(node, name, root, context)


def _name_of_tf1(
    node: ast.Attribute, name: str, root: ast.Name, context: Context
) -> None:
    """Write a name of TensorFlow 1 as one of `compat.v1` where the import stays."""
    if context.module.names.by_imports(root) not in _WHOLE:
        return
    is_in_both = context.target.has(name) and context.target.has_v1(name)
    if not is_in_both or f"{name}.".startswith(("tf.compat.", "tf.contrib.")):
        return
    if resolve(name, context.target) is None:
        inside = ast.unparse(node).partition(".")[2]
        context.replace(NAME, node, f"{root.id}.compat.v1.{inside}")


def _name_of_tf2(
    node: ast.Attribute, name: str, root: ast.Name, context: Context
) -> None:
    """Write a name of TensorFlow 2 below a v1 import as one of `compat.v2`."""
    is_loaded = context.module.names.bound.get(root.id) in _WHOLE
    if not (is_loaded or context.imports.bound.get(root.id) == _V1):
        return
    if not name.startswith("tf.") or name.startswith(("tf.compat", "tf.contrib")):
        return
    inside = ast.unparse(node).partition(".")[2]
    if context.target.has(name) and not inside.startswith("compat."):
        context.replace(NAME, node, f"{root.id}.compat.v2.{inside}")


RULE = RewriteRule(
    name=NAME,
    summary="A file that means TensorFlow 1 imports `tensorflow.compat.v1`.",
    nodes=(ast.Import, ast.ImportFrom, ast.Attribute, ast.Call),
    apply=apply,
    codes=("V1_NAME", "V1_FILE"),
    prepare=prepare,
    before_scan=inherit_v1,
)
