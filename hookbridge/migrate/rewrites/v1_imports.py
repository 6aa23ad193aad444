"""The import of TensorFlow in a file that means TensorFlow 1.

    -import tensorflow as tf
    +import tensorflow.compat.v1 as tf
    -from tensorflow.keras import backend
    +from tensorflow.compat.v1.keras import backend
    -loss = tf.keras.losses.MSE(a, b) + tf.summary.create_file_writer("x")
    +loss = tf.keras.losses.MSE(a, b) + tf.compat.v2.summary.create_file_writer("x")

A file does, if it uses a name that only TF1 had, or has no evidence of its own and is a
part of a program of TF1; names such as `tf.compat.v1.X` are evidence of TF2.
`hookbridge run` decides the same. Many names are in both versions and act differently
(`tf.losses`, `tf.data.Dataset`, canned Estimators): the import keeps TF1's meaning.
"""

from __future__ import annotations

from typing import Any

import libcst as cst

from hookbridge.migrate.fates import fate
from hookbridge.migrate.reading.names import canonical
from hookbridge.migrate.rewriting.context import Context
from hookbridge.migrate.rewriting.rule import RewriteRule
from hookbridge.migrate.rewriting.tree_names import dotted, imported_as

NAME = "v1-imports"
_V1 = "tensorflow.compat.v1"
_WHOLE = ("tensorflow", "tensorflow.compat.v2")


def prepare(context: Context) -> None:
    """Decides first, because all other rules ask what a name means."""
    if not context.place.means_old:
        return
    bound = context.imports.bound
    if "tensorflow" in bound:
        return  # `import tensorflow.python.x` needs `tensorflow` itself
    context.names.is_v1 = True
    for name, value in context.source.names.bound.items():
        if name not in context.source.names.of_its_own:
            context.imports.bind(name, value)  # another file of the program has it
    for name, value in list(bound.items()):
        if value in _WHOLE:
            context.imports.bind(name, _V1)


def apply(
    old: cst.ImportAlias | cst.ImportFrom | cst.Attribute,
    new: cst.ImportAlias | cst.ImportFrom | cst.Attribute,
    context: Context,
) -> Any:
    """Changes an import, or a name that only TF2 has."""
    if not context.names.is_v1:
        return new
    if isinstance(old, cst.ImportFrom) and isinstance(new, cst.ImportFrom):
        return _import_from(old, new, context)
    if isinstance(old, cst.Attribute):
        return _name_of_tf2(old, new, context)
    assert isinstance(old, cst.ImportAlias)
    is_import = isinstance(context.parent(old), cst.Import)
    if not is_import or not imported_as(old) or dotted(old.name) not in _WHOLE:
        return new
    after = new.with_changes(name=cst.parse_expression(_V1))
    context.edit(NAME, old, after)
    return after


def _import_from(old: cst.ImportFrom, new: cst.ImportFrom, context: Context) -> Any:
    """Imports from v1 what both have; what died is left to `imports`."""
    module = "" if old.module is None or old.relative else dotted(old.module) or ""
    place = canonical(module)
    if isinstance(old.names, cst.ImportStar) or place.partition(".")[0] != "tf":
        return new
    if place.startswith(("tf.compat.v1", "tf.contrib", "tf.examples")):
        return new
    for alias in old.names:
        full = f"{place}.{dotted(alias.name)}"
        both = context.target.has(full) and context.target.has_v1(full)
        if not both or fate(context.names.meant(full), context.target) is not None:
            return new
    name = module.replace("tensorflow", _V1, 1).replace(f"{_V1}.compat.v2", _V1)
    after = new.with_changes(module=cst.parse_expression(name))
    context.edit(NAME, old, after)
    return after


def _name_of_tf2(old: cst.Attribute, new: Any, context: Context) -> Any:
    above = context.parent(old)
    if isinstance(above, cst.Attribute) and above.value is old:
        return new  # a part of a longer name
    name = context.names.of(old)
    root, _, rest = (dotted(old) or "").partition(".")
    is_written = isinstance(above, cst.AssignTarget | cst.Del)
    if name is None or is_written or context.imports.bound.get(root) != _V1:
        return new
    if not name.startswith("tf.") or name.startswith(("tf.compat", "tf.contrib")):
        return new
    if not context.target.has(name) or rest.startswith("compat."):
        return new
    after = cst.parse_expression(f"{root}.compat.v2.{rest}")
    context.edit(NAME, old, after)
    return after


RULE = RewriteRule(
    name=NAME,
    summary="A file that means TensorFlow 1 imports `tensorflow.compat.v1`.",
    nodes=(cst.ImportAlias, cst.ImportFrom, cst.Attribute),
    apply=apply,
    codes=("V1_NAME", "V1_FILE"),
    words=("import",),
    prepare=prepare,
)
