"""Findings about names: what the target TensorFlow lacks in one module."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from hookbridge.migrate import contrib_names
from hookbridge.migrate.findings import Finding
from hookbridge.migrate.names import Names, canonical
from hookbridge.migrate.rules import OTHER_CODES, found_at, rule_for
from hookbridge.migrate.sources import Source
from hookbridge.migrate.target import Target

# Modules in which TensorFlow itself defines hooks and their listeners.
_HOOK_MODULES = (
    "tensorflow.python.training.session_run_hook",
    "tensorflow.python.training.basic_session_run_hooks",
    "tensorflow.python.training.monitored_session",
)


# Functions of tf_slim that need private names of TensorFlow or Keras that are gone.
_SLIM_BROKEN = {
    f"tf_slim.{name}": f"`hb.contrib.slim.{name}`, or {way}"
    for name, way in (
        ("batch_norm", "`tf.compat.v1.layers.batch_normalization`"),
        ("optimize_loss", "an optimizer's `minimize`"),
    )
}
_SLIM_BROKEN |= {
    name.replace(".", ".layers.", 1): way for name, way in _SLIM_BROKEN.items()
}


def find(source: Source, names: Names, target: Target) -> Iterator[Finding]:
    """Every use of a TensorFlow name that the target lacks."""
    for module in names.starred:
        if canonical(module).partition(".")[0] in ("tf", "tensorflow"):
            yield found_at(source, source.tree, "STAR_IMPORT", f"{module}.*", "")
    for node, name in _uses(source, names):
        found = describe(name, target)
        if found is not None and not _is_settled(found[0], name, source):
            code, verdict, message, way_out = found
            yield Finding(
                file=source.file,
                line=node.lineno,
                column=node.col_offset + 1,
                code=code,
                verdict=verdict,
                name=name,
                message=message,
                way_out=way_out,
                cell=source.cell,
            )


def _is_settled(code: str, name: str, source: Source) -> bool:
    """Whether the file itself asks for Keras 2, which the layers of v1 need."""
    is_v1 = name.startswith("tf.compat.v1.")
    return code == "LAYERS" and is_v1 and "TF_USE_LEGACY_KERAS" in source.text


def describe(name: str, target: Target) -> tuple[str, str, str, str] | None:
    """What the target needs for a canonical name; None if it needs nothing.

    Returns:
      Code, verdict, message and way out.
    """
    root, _, rest = name.partition(".")
    hook = hook_name(name, target)
    if root == "tf" and not rest:
        return None
    if name in _SLIM_BROKEN:
        verdict, message = OTHER_CODES["SLIM_BROKEN"]
        return "SLIM_BROKEN", verdict, message, _SLIM_BROKEN[name]
    if hook is not None:
        verdict, message = OTHER_CODES["HOOK_NAME"]
        if target.has(name):
            return None
        return "HOOK_NAME", verdict, message, f"`{hook}`"
    matched = rule_for(name)
    there = root == "tf" and target.has(name)
    if matched is not None:
        rule, prefix = matched
        # A TensorFlow without Estimator has no Keras 2, which the layers of v1 need.
        ends_with_estimator = rule.code.startswith(("ESTIMATOR", "LAYERS"))
        applies = not target.has_estimator if ends_with_estimator else not there
        if applies:
            carried = contrib_names.carried_name(name)
            if rule.verdict == "manual" and carried is not None:
                way_out = f"`{carried.replace('hookbridge', 'hb', 1)}`"
                return rule.code, "assisted", rule.reason, way_out
            way_out = rule.written(name, prefix)
            return rule.code, rule.verdict, rule.reason, way_out
    if root != "tf" or there:
        return None
    if not name.startswith("tf.compat.") and target.has_v1(name):
        verdict, message = OTHER_CODES["V1_NAME"]
        return "V1_NAME", verdict, message, f"`tf.compat.v1.{rest}`"
    verdict, message = OTHER_CODES["MISSING"]
    return "MISSING", verdict, message, "see the release notes of TensorFlow"


def hook_name(name: str, target: Target) -> str | None:
    """The new name for the old name of a hook; None if it is no such name."""
    place, _, last = name.rpartition(".")
    old = (
        *("tf.estimator", "tf.compat.v1.estimator", "tensorflow_estimator.estimator"),
        *_HOOK_MODULES,
    )
    hooks = ("Hook", "SessionRunArgs", "SessionRunContext", "SessionRunValues")
    others = ("CheckpointSaverListener", "SecondOrStepTimer", "MonitoredSession")
    living = f"tf.compat.v1.train.{last}"
    if place in old and last.endswith((*hooks, *others)) and target.has(living):
        return living
    return None


def _uses(source: Source, names: Names) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    """The outermost dotted names in a module, and the names that it imports."""
    inner: set[int] = set()
    for node in source.nodes:
        if isinstance(node, ast.Attribute):
            inner.add(id(node.value))
            if id(node) not in inner and (name := names.of(node)) is not None:
                yield node, name
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                if alias.name != "*":
                    yield node, canonical(f"{node.module}.{alias.name}")
        elif isinstance(node, ast.Import):
            for alias in node.names:
                yield node, canonical(alias.name)
