"""Findings about names: what the target TensorFlow lacks in one module."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from hookbridge.migrate.fates import fate
from hookbridge.migrate.findings import Finding
from hookbridge.migrate.reading.meaning import Meaning
from hookbridge.migrate.reading.modules import Module
from hookbridge.migrate.reading.names import as_v1, canonical, uses
from hookbridge.migrate.reading.programs import Place
from hookbridge.migrate.target import Target


def find(module: Module, place: Place, target: Target) -> Iterator[Finding]:
    """Every use of a TensorFlow name that the target lacks.

    What the program writes itself, and what it does without, is not reported.
    """
    names, source = module.names, module.source
    for starred in names.starred:
        if canonical(starred).partition(".")[0] in ("tf", "tensorflow"):
            yield module.finding(source.tree, "STAR_IMPORT", f"{starred}.*", "")
    is_old, meaning = place.means_old, place.meaning
    flags: set[str] = set()
    for node, name in uses(source.nodes, names):
        if ".FLAGS." in name:
            # One row for the flags, however many of them the file reads.
            name = name[: name.index(".FLAGS.") + len(".FLAGS")]
            if name in flags:
                continue
        if name.endswith(".FLAGS"):
            flags.add(name)
        if id(node) in module.guarded or _is_written(name, meaning):
            continue
        outcome = fate(name, target)
        if is_old and outcome is not None and outcome.code == "ESTIMATOR":
            outcome = fate(as_v1(name), target) or outcome
        if outcome is not None:
            yield module.finding(node, outcome.code, name, outcome.way_out)
    first = next(_imports_tensorflow(module), None)
    alone = module.evidence.old or module.evidence.leftover
    if is_old and not alone and meaning.old and first is not None:
        way = "`import tensorflow.compat.v1 as tf`"
        yield module.finding(first, "V1_FILE", f"TensorFlow 1: {meaning.old}", way)


def _is_written(name: str, meaning: Meaning) -> bool:
    return any(f"{name}.".startswith(f"{own}.") for own in meaning.written)


def _imports_tensorflow(module: Module) -> Iterator[ast.AST]:
    for node in module.source.nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names]
            module_name = getattr(node, "module", None)
            if "tensorflow" in (module_name, *names):
                yield node
