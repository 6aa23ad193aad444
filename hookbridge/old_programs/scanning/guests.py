"""Classes of guests, with the events of each, and the places that take guests."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping

from hookbridge.ground.lifecycle.events import HOOK_METHODS
from hookbridge.ground.lifecycle.overrides import FRAMEWORKS
from hookbridge.old_programs.reading.one_file.modules import Module
from hookbridge.old_programs.scanning.findings import Finding, finding_at
from hookbridge.tf1_names.syntax import last_name

_OF_HOOKS = ("tensorflow", "tensorflow_estimator", "hookbridge")
_HOOKS = ("Hook", "_hook")  # classes, and functions that make one
HOOK_ARGUMENTS = (
    "hooks",
    "chief_only_hooks",
    "training_hooks",
    "training_chief_hooks",
    "evaluation_hooks",
    "prediction_hooks",
    "saving_listeners",
)
# Calls that take hooks by position, or make one.
_TAKERS = ("make_session_run_hook", "model_to_estimator")
KERAS_LOOPS = ("fit", "fit_generator", "evaluate", "predict")
_OURS = ("hookbridge.as_hooks", "hookbridge.as_callbacks")


class Guests:
    """Which classes of some modules are guests; subclasses are followed across files.

    `others` has `{dotted name of a class: kind}` of guest classes in other modules.
    """

    def __init__(
        self, modules: Iterable[Module], others: Mapping[str, str] | None = None
    ) -> None:
        self.kinds: dict[str, str] = dict(others or {})
        self.classes: list[tuple[Module, ast.ClassDef]] = [
            (module, node)
            for module in modules
            for node in module.nodes
            if isinstance(node, ast.ClassDef)
        ]
        before = -1
        while before < len(self.kinds):  # a base class may come after its subclasses
            before = len(self.kinds)
            for module, node in self.classes:
                self._add(module, node)

    def _add(self, module: Module, node: ast.ClassDef) -> None:
        """Note a class if one of its bases is a guest class."""
        for base in node.bases:
            own_class = base.id if isinstance(base, ast.Name) else ""
            kind = self.kind(
                module.names.through_program(base), f"{module.dotted}.{own_class}"
            )
            if kind is not None:
                self.kinds.setdefault(f"{module.dotted}.{node.name}", kind)

    def kind(self, dotted: str | None, class_name: str = "") -> str | None:
        """Return "hook", "listener" or "callback" for a class, or what makes one.

        `dotted` is its name as imported, `class_name` that of a class of the module.
        None where it is not certain.
        """
        if dotted is None:
            return self.kinds.get(class_name)
        module, _, attribute = dotted.rpartition(".")
        root = module.partition(".")[0]
        if attribute == "CheckpointSaverListener":
            return "listener"
        is_hook = root in _OF_HOOKS and attribute.endswith(_HOOKS)
        if attribute == "SessionRunHook" or is_hook:
            return "hook"
        if root in FRAMEWORKS and (
            attribute == "Callback" or "callbacks" in module.split(".")
        ):
            return "callback"
        names = (n for n in self.kinds if f".{n}".endswith(f".{dotted}"))
        return self.kinds.get(next(names, ""))


def classes(guests: Guests, modules: Collection[Module]) -> Iterator[Finding]:
    """Yield the guest classes of some modules."""
    for module, node in guests.classes:
        kind = guests.kinds.get(f"{module.dotted}.{node.name}")
        if kind is None or module not in modules:
            continue
        methods = {n.name: n for n in node.body if isinstance(n, ast.FunctionDef)}
        events = [n for n in methods if n in HOOK_METHODS or n.startswith("on_")]
        adds_ops = "begin" in methods and _makes_ops(methods["begin"])
        details = {"kind": kind, "methods": events, "adds_ops": adds_ops}
        code, way = "HOOK_CLASS", "`hb.as_callbacks(...)`"
        if kind == "callback":
            code, way = "CALLBACK_CLASS", "`hb.as_hooks(...)`"
        elif kind == "listener":
            way = f"goes with its CheckpointSaverHook through {way}"
        elif adds_ops:
            way += "; what `begin` adds is made on the live graph"
        yield finding_at(module, node, code, node.name, way, details=details)


def _makes_ops(begin: ast.FunctionDef) -> bool:
    """Return whether `begin` calls TensorFlow for more than look-ups."""
    return any(
        isinstance(n, ast.Call)
        and isinstance(n.func, ast.Attribute)
        and not n.func.attr.startswith(("get_", "Timer"))
        and ast.unparse(n.func).partition(".")[0] in ("tf", "v1", "tf1", "tensorflow")
        for n in ast.walk(begin)
    )


def sites(module: Module) -> Iterator[Finding]:
    """Yield every place of one module that takes guests."""
    names_from_us = [
        target.id
        for node in module.nodes
        if isinstance(node, ast.Assign) and _is_from_us(node.value, module, ())
        for target in node.targets
        if isinstance(target, ast.Name)
    ]
    for node in module.nodes:
        if not isinstance(node, ast.Call):
            continue
        callee = last_name(node.func)
        for keyword in node.keywords:
            if _is_from_us(keyword.value, module, names_from_us):
                continue
            name = f"{callee}({keyword.arg}=)"
            if keyword.arg in HOOK_ARGUMENTS:
                way = f"`{keyword.arg}=hb.as_hooks([...])` takes callbacks as well"
                yield finding_at(module, node, "HOOK_SITE", name, way)
            elif keyword.arg == "callbacks" and callee in KERAS_LOOPS:
                way = "`callbacks=hb.as_callbacks([...])` takes hooks as well"
                yield finding_at(module, node, "CALLBACK_SITE", name, way)
        if callee in _TAKERS:
            way = "`hb.as_hooks` takes callbacks where hooks are taken"
            yield finding_at(module, node, "HOOK_SITE", callee, way)


def _is_from_us(node: ast.expr, module: Module, names: Collection[str]) -> bool:
    """Return whether `hb.as_hooks` or `hb.as_callbacks` returns it.

    `names` hold such.
    """
    if isinstance(node, ast.Call):
        return module.names.through_program(node.func) in _OURS
    return isinstance(node, ast.Name) and node.id in names
