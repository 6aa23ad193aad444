"""Places that take guests, and runs of a session that train."""

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
_UPDATES = ("minimize", "apply_gradients", "create_train_op", "optimize_loss")
_OURS = ("hookbridge.as_hooks", "hookbridge.as_callbacks")


def find(module: Module) -> Iterator[Finding]:
    """Every place of one module that takes guests."""
    ours = _from_us(module)
    for node in module.nodes:
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


def _from_us(module: Module) -> frozenset[str]:
    """The names that are given what `hb.as_hooks` or `hb.as_callbacks` returns."""
    return frozenset(
        target.id
        for node in module.nodes
        if isinstance(node, ast.Assign) and _is_from_us(node.value, module, ())
        for target in node.targets
        if isinstance(target, ast.Name)
    )


def _is_from_us(node: ast.expr, module: Module, names: Collection[str]) -> bool:
    if isinstance(node, ast.Call):
        return module.names.raw(node.func) in _OURS
    return isinstance(node, ast.Name) and node.id in names


class Trainings:
    """Tells which runs of sessions in a module are steps of a training, by their names.

    A fetched name means one if it says so, or if what it is given makes an update.
    """

    def __init__(self, module: Module) -> None:
        self._updates: set[str] = set()
        assignments = [
            (ast.unparse(target), node.value)
            for node in module.nodes
            if isinstance(node, ast.Assign)
            for target in node.targets
        ]
        count = -1
        while count < len(self._updates):
            count = len(self._updates)
            self._updates |= {name for name, v in assignments if self._updates_in(v)}

    def _updates_in(self, value: ast.expr) -> bool:
        return any(
            last_name(node) in _UPDATES or ast.unparse(node) in self._updates
            for node in ast.walk(value)
            if isinstance(node, ast.Name | ast.Attribute)
        )

    def has(self, run: ast.Call) -> bool:
        """Whether a call of `run` is one."""
        fetched = [*run.args, *(keyword.value for keyword in run.keywords)]
        names = (last_name(n) for one in fetched for n in ast.walk(one))
        return any(map(self._updates_in, fetched)) or any(
            part in name.lower() for name in names for part in _TRAINING
        )


def last_name(node: ast.AST) -> str:
    """The last part of a name; empty for other expressions."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
