"""Checks of versions that end a program on the target."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from hookbridge.old_programs.reading.names.conditions import UNDER_RUN
from hookbridge.old_programs.reading.one_file.modules import Module
from hookbridge.old_programs.reading.whole_programs.in_program import InProgram
from hookbridge.old_programs.scanning.findings import Finding, finding_at
from hookbridge.tf1_names.syntax import last_name
from hookbridge.tf1_names.target import Target

_EXITS = ("exit", "quit", "_exit", "abort")


def of_versions(
    module: Module, in_program: InProgram, node: ast.stmt, target: Target
) -> Iterator[Finding]:
    """Yield an `assert`, or an `if` whose branch ends the program, that fails today."""
    if isinstance(node, ast.Assert):
        test, is_passed = node.test, True
    elif isinstance(node, ast.If) and _ends(node.body):
        test, is_passed = node.test, False
    elif isinstance(node, ast.If) and _ends(node.orelse):
        test, is_passed = node.test, True
    else:
        return
    conditions = module.conditions
    if id(node) in module.guarded or not conditions.depend_on_version(test):
        return
    current = f"{target.version}.0"
    is_refused = conditions.outcome(test, current) is (not is_passed)
    if not is_refused or _is_tried(module, node):
        return
    version = UNDER_RUN if in_program.targets_tf1 else current
    is_run = conditions.outcome(test, version) is is_passed
    code = "VERSION_CHECK" if is_run else "VERSION_REFUSED"
    way = "the program without this check"
    yield finding_at(module, node, code, ast.unparse(test), way)


def _is_tried(module: Module, node: ast.stmt) -> bool:
    """Return whether a statement stands in a `try` that may catch what it raises."""
    tries = (n for n in module.nodes if isinstance(n, ast.Try) and n.handlers)
    return any(node in ast.walk(part) for tried in tries for part in tried.body)


def _ends(body: list[ast.stmt]) -> bool:
    """Return whether a branch ends the program."""
    end = body[-1] if body else None
    if isinstance(end, ast.Expr) and isinstance(end.value, ast.Call):
        return last_name(end.value.func) in _EXITS
    return isinstance(end, ast.Raise)
