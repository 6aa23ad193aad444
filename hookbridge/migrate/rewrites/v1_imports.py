"""The import of TensorFlow in a file that is TF1 throughout.

    -import tensorflow as tf
    +import tensorflow.compat.v1 as tf

A file is, if it uses a name that only TF1 has at the top and neither `tf.compat` nor a
name that only TF2 has. Many names are in both and act differently (`tf.losses`,
`tf.data.Dataset`): the import keeps TF1's meaning of all of them. Imports from
`tensorflow.keras` in such a file become those of v1, too.
"""

from __future__ import annotations

from typing import Any

import libcst as cst

from hookbridge.migrate.name_findings import describe
from hookbridge.migrate.names import canonical
from hookbridge.migrate.rewriting.context import Context
from hookbridge.migrate.rewriting.rule import RewriteRule
from hookbridge.migrate.rewriting.tree_names import dotted, imported_as

NAME = "v1-imports"
_KERAS = "tensorflow.keras."


def prepare(context: Context) -> None:
    """Decides first, because all other rules ask what a name means."""
    roots = [n for n, v in context.imports.bound.items() if v == "tensorflow"]
    if len(roots) == 1 and roots[0] != "tensorflow" and _is_v1(roots[0], context):
        context.v1_root = roots[0]
        context.names.treat_as_v1(roots[0])
        context.imports.bind(roots[0], "tensorflow.compat.v1")


def _is_v1(root: str, context: Context) -> bool:
    only_v1 = False
    for chain in context.chains:
        name = context.names.of(chain)
        if name is None or not name.startswith("tf."):
            continue
        if name.startswith("tf.compat"):
            return False
        found = describe(name, context.target)
        code = "" if found is None else found[0]
        only_v1 |= code == "V1_NAME" or name.startswith("tf.layers.")
        if not code and not context.target.has_v1(name):
            return False
    imports = sum(root == name for name in _top_level(context.module))
    return only_v1 and imports == 1


def _top_level(module: cst.Module) -> list[str]:
    """The names that `import tensorflow` binds outside of all blocks."""
    return [
        imported_as(alias) or ""
        for statement in module.body
        if isinstance(statement, cst.SimpleStatementLine)
        for small in statement.body
        if isinstance(small, cst.Import)
        for alias in small.names
        if dotted(alias.name) in ("tensorflow", "tensorflow.compat.v2")
    ]


def apply(
    old: cst.ImportAlias | cst.ImportFrom,
    new: cst.ImportAlias | cst.ImportFrom,
    context: Context,
) -> Any:
    """Changes the import that `prepare` has chosen, and those of parts of Keras."""
    if isinstance(old, cst.ImportFrom) and isinstance(new, cst.ImportFrom):
        return _keras(old, new, context)
    assert isinstance(old, cst.ImportAlias)
    is_it = context.v1_root and imported_as(old) == context.v1_root
    if not is_it or canonical(dotted(old.name) or "") != "tf":
        return new
    if not isinstance(context.parent(old), cst.Import):
        return new
    name = cst.ensure_type(cst.parse_expression("tensorflow.compat.v1"), cst.Attribute)
    after = new.with_changes(name=name)
    context.edit(NAME, old, after)
    return after


def _keras(old: cst.ImportFrom, new: cst.ImportFrom, context: Context) -> Any:
    """Imports Keras from v1: in TF1 `tf.keras` was that Keras, which has sessions."""
    module = "" if old.module is None or old.relative else dotted(old.module) or ""
    names = [] if isinstance(old.names, cst.ImportStar) else old.names
    whole = module == "tensorflow" and {dotted(n.name) for n in names} == {"keras"}
    if not context.v1_root or not (whole or f"{module}.".startswith(_KERAS)):
        return new
    name = module.replace("tensorflow", "tensorflow.compat.v1", 1)
    after = new.with_changes(module=cst.parse_expression(name))
    context.edit(NAME, old, after)
    return after


RULE = RewriteRule(
    name=NAME,
    summary="A file that is TF1 throughout imports `tensorflow.compat.v1`.",
    nodes=(cst.ImportAlias, cst.ImportFrom),
    apply=apply,
    codes=("V1_NAME",),
    words=("tensorflow",),
    prepare=prepare,
)
