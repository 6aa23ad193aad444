"""The import of TensorFlow in a file that means TensorFlow 1."""

from __future__ import annotations

import ast
import re

from hookbridge.old_programs.names.resolution import resolve
from hookbridge.old_programs.reading.bound_names import canonical
from hookbridge.old_programs.reading.modules import Module
from hookbridge.old_programs.reading.programs import Place
from hookbridge.old_programs.rewriting.engine.context import Context, root_of
from hookbridge.old_programs.rewriting.engine.rule import RewriteRule

NAME = "v1-imports"
_V1 = "tensorflow.compat.v1"
_WHOLE = ("tensorflow", "tensorflow.compat.v2")


def inherit_v1(module: Module, place: Place) -> None:
    """Lets names of TensorFlow from other files of the program be those of v1."""
    names = module.names
    for name, value in names.bound.items() if place.targets_tf1 else ():
        if name not in names.bound_here and value.partition(".")[0] == "tensorflow":
            rest = value[len("tensorflow") :]
            if not rest.startswith((".compat.", ".python", ".contrib", ".core")):
                names.bound[name] = f"{_V1}{rest}"


def prepare(context: Context) -> None:
    """Decides first, because all other rules ask what a name means."""
    bound, names = context.imports.bound, context.module.names
    # `import tensorflow.python.x` needs `tensorflow` itself.
    context.is_v1 = context.place.targets_tf1 and "tensorflow" not in bound
    if context.is_v1:
        others = {n: v for n, v in names.bound.items() if n not in names.bound_here}
        bound.update(others)  # another file of the program has them
        bound.update({name: _V1 for name, value in bound.items() if value in _WHOLE})


def apply(node: ast.Import | ast.ImportFrom | ast.Attribute, context: Context) -> None:
    """Changes an import, or a name that only TF2 has."""
    if not context.is_v1:
        return
    if isinstance(node, ast.ImportFrom):
        _import_from(node, context)
    elif isinstance(node, ast.Attribute):
        _name_of_tf2(node, context)
    else:
        for alias in node.names:
            if alias.asname and alias.name in _WHOLE:
                context.replace(NAME, alias, f"{_V1} as {alias.asname}")


def _import_from(node: ast.ImportFrom, context: Context) -> None:
    """Imports from v1 what both have; what died is left to `dead-imports`."""
    module = "" if node.level else node.module or ""
    place = canonical(module)
    others = ("tf.compat.v1", "tf.contrib", "tf.examples")
    if place.partition(".")[0] != "tf" or place.startswith(others):
        return
    for alias in node.names:
        full = f"{place}.{alias.name}"
        both = context.target.has(full) and context.target.has_v1(full)
        if alias.name == "*" or not both:
            return
        if resolve(context.meant(full), context.target) is not None:
            return
    name = module.replace("tensorflow", _V1, 1).replace(f"{_V1}.compat.v2", _V1)
    if written := re.match(rf"from\s+({re.escape(module)})\s", context.code(node)):
        first, _ = context.span(node)
        span = first + written.start(1), first + written.end(1)
        context.change(NAME, node, span, name)


def _name_of_tf2(node: ast.Attribute, context: Context) -> None:
    """Writes a name of TensorFlow 2 below a v1 import as one of `compat.v2`."""
    name, root = context.name(node), root_of(node)
    if name is None or not isinstance(root, ast.Name) or context.is_part(node):
        return
    if not isinstance(node.ctx, ast.Load) or context.imports.bound.get(root.id) != _V1:
        return
    if not name.startswith("tf.") or name.startswith(("tf.compat", "tf.contrib")):
        return
    rest = ast.unparse(node).partition(".")[2]
    if context.target.has(name) and not rest.startswith("compat."):
        context.replace(NAME, node, f"{root.id}.compat.v2.{rest}")


RULE = RewriteRule(
    name=NAME,
    summary="A file that means TensorFlow 1 imports `tensorflow.compat.v1`.",
    nodes=(ast.Import, ast.ImportFrom, ast.Attribute),
    apply=apply,
    codes=("V1_NAME", "V1_FILE"),
    prepare=prepare,
    before_scan=inherit_v1,
)
