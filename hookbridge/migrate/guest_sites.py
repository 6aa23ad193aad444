"""Places that take guests, and runs of a session that only fetch."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from hookbridge.migrate.findings import Finding
from hookbridge.migrate.reading.modules import Module

HOOK_ARGUMENTS = (
    *("hooks", "chief_only_hooks", "training_hooks", "training_chief_hooks"),
    *("evaluation_hooks", "prediction_hooks", "saving_listeners"),
)
# Calls that take hooks by position, or make one.
_TAKERS = ("make_session_run_hook", "model_to_estimator")
SESSIONS = ("MonitoredTrainingSession", "MonitoredSession", "SingularMonitoredSession")
KERAS_LOOPS = ("fit", "fit_generator", "evaluate", "predict")
_TRAINING = ("train", "minimize", "apply_gradients", "update", "optim", "solver")
_OURS = ("hookbridge.as_hooks", "hookbridge.as_callbacks")


def find(module: Module) -> Iterator[Finding]:
    """Every place of one module that takes guests, and every run that only fetches."""
    ours = _from_us(module)
    for node in module.source.nodes:
        if not isinstance(node, ast.Call):
            continue
        callee = last_name(node.func)
        for keyword in node.keywords:
            if _is_from_us(keyword.value, module, ours):
                continue
            if keyword.arg in HOOK_ARGUMENTS:
                name = f"{callee}({keyword.arg}=)"
                way = f"`{keyword.arg}=hb.as_hooks([...])` takes callbacks as well"
                yield module.finding(node, "HOOK_SITE", name, way)
            elif keyword.arg == "callbacks" and callee in KERAS_LOOPS:
                way = "`callbacks=hb.as_callbacks([...])` takes hooks as well"
                name = f"{callee}(callbacks=)"
                yield module.finding(node, "CALLBACK_SITE", name, way)
        if callee in _TAKERS:
            way = "`hb.as_hooks` takes callbacks where hooks are taken"
            yield module.finding(node, "HOOK_SITE", callee, way)
    for node in fetch_runs(module):
        way = "every hook is called around it; a carried callback is not"
        yield module.finding(node, "FETCH_RUN", ast.unparse(node), way)


def _from_us(module: Module) -> frozenset[str]:
    """The names that are given what `hb.as_hooks` or `hb.as_callbacks` returns."""
    return frozenset(
        target.id
        for node in module.source.nodes
        if isinstance(node, ast.Assign) and _is_from_us(node.value, module, ())
        for target in node.targets
        if isinstance(target, ast.Name)
    )


def _is_from_us(node: ast.expr, module: Module, names: Collection[str]) -> bool:
    if isinstance(node, ast.Call):
        return module.names.raw(node.func) in _OURS
    return isinstance(node, ast.Name) and node.id in names


def fetch_runs(module: Module) -> Iterator[ast.AST]:
    """Runs of a monitored session that name no train op, where other runs do."""
    for block in module.source.nodes:
        if not isinstance(block, ast.With):
            continue
        for item in block.items:
            if not (
                isinstance(item.context_expr, ast.Call)
                and last_name(item.context_expr.func) in SESSIONS
                and isinstance(item.optional_vars, ast.Name)
            ):
                continue
            session = item.optional_vars.id
            runs = [n for n in ast.walk(block) if _is_run(n, session)]
            training = [n for n in runs if names_training(n)]
            if training and len(training) < len(runs):
                yield from (node for node in runs if node not in training)


def _is_run(node: ast.AST, session: str) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "run"
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == session
    )


def names_training(node: ast.AST) -> bool:
    """Whether the names in an expression are those of a training."""
    words = (
        getattr(n, "id", "") or getattr(n, "attr", "")
        for n in ast.walk(node)
        if isinstance(n, ast.Name | ast.Attribute)
    )
    return any(part in word.lower() for word in words for part in _TRAINING)


def last_name(node: ast.expr) -> str:
    """The last part of a name; empty for other expressions."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
