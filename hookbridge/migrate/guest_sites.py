"""Places that take guests, and runs of a session that only fetch."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from hookbridge.migrate.findings import Finding
from hookbridge.migrate.rules import found_at
from hookbridge.migrate.sources import Source

HOOK_ARGUMENTS = (
    *("hooks", "chief_only_hooks", "training_hooks", "training_chief_hooks"),
    *("evaluation_hooks", "prediction_hooks", "saving_listeners"),
)
# Calls that take hooks by position, or make one.
_TAKERS = ("make_session_run_hook", "model_to_estimator")
_SESSIONS = ("MonitoredTrainingSession", "MonitoredSession", "SingularMonitoredSession")
_KERAS_LOOPS = ("fit", "fit_generator", "evaluate", "predict")
_TRAINING = ("train", "minimize", "apply_gradients", "update", "optim")


def find(source: Source) -> Iterator[Finding]:
    """Every place of one module that takes guests, and every run that only fetches."""
    for node in source.nodes:
        if not isinstance(node, ast.Call):
            continue
        callee = _last(node.func)
        for keyword in node.keywords:
            if keyword.arg in HOOK_ARGUMENTS:
                name = f"{callee}({keyword.arg}=)"
                way = f"`{keyword.arg}=hb.as_hooks([...])` takes callbacks as well"
                yield found_at(source, node, "HOOK_SITE", name, way)
            elif keyword.arg == "callbacks" and callee in (
                "fit",
                "evaluate",
                "predict",
            ):
                way = "`callbacks=hb.as_callbacks([...])` takes hooks as well"
                name = f"{callee}(callbacks=)"
                yield found_at(source, node, "CALLBACK_SITE", name, way)
        if callee in _TAKERS:
            way = "`hb.as_hooks` takes callbacks where hooks are taken"
            yield found_at(source, node, "HOOK_SITE", callee, way)
    yield from _fetch_runs(source)


def _fetch_runs(source: Source) -> Iterator[Finding]:
    """Runs of a monitored session that name no train op, where other runs do."""
    for block in source.nodes:
        if not isinstance(block, ast.With):
            continue
        for item in block.items:
            if not (
                isinstance(item.context_expr, ast.Call)
                and _last(item.context_expr.func) in _SESSIONS
                and isinstance(item.optional_vars, ast.Name)
            ):
                continue
            session = item.optional_vars.id
            runs = [n for n in ast.walk(block) if _is_run(n, session)]
            told = [n for n in runs if _names_training(n)]
            if told and len(told) < len(runs):
                for node in runs:
                    if node not in told:
                        way = (
                            "every hook is called around it; a carried callback is not"
                        )
                        text = ast.unparse(node)
                        yield found_at(source, node, "FETCH_RUN", text, way)


def _is_run(node: ast.AST, session: str) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "run"
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == session
    )


def _names_training(node: ast.AST) -> bool:
    words = (
        getattr(n, "id", "") or getattr(n, "attr", "")
        for n in ast.walk(node)
        if isinstance(n, ast.Name | ast.Attribute)
    )
    return any(part in word.lower() for word in words for part in _TRAINING)


def _last(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
