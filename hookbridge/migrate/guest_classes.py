"""Hook and callback classes of a source tree, each with a fingerprint."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from hookbridge.migrate.findings import Finding
from hookbridge.migrate.guest_sites import last_name
from hookbridge.migrate.reading.modules import Module

HOOK_METHODS = ("begin", "after_create_session", "before_run", "after_run", "end")
_KERAS = ("tensorflow", "keras", "tf_keras")
_OF_HOOKS = ("tensorflow", "tensorflow_estimator", "hookbridge")
_HOOKS = ("Hook", "_hook")  # classes, and functions that make one
_WRITERS = frozenset(
    {"FileWriter", "open", "GFile", "makedirs", "add_summary", "save", "dump", "write"}
)


class Guests:
    """Which classes of some modules are guests; subclasses are followed across files.

    `others` has `{dotted name of a class: kind}` of guest classes in other modules.
    """

    def __init__(
        self, modules: Iterable[Module], others: Mapping[str, str] | None = None
    ) -> None:
        self.kinds = dict(others or {})
        self.classes = [
            (module, node)
            for module in modules
            for node in module.nodes
            if isinstance(node, ast.ClassDef)
        ]
        # A base class may come after its subclasses.
        waiting = self.classes
        while waiting:
            rest = [pair for pair in waiting if not self._add(*pair)]
            if len(rest) == len(waiting):
                break  # the classes that are left derive from no guest
            waiting = rest

    def _add(self, module: Module, node: ast.ClassDef) -> bool:
        """Notes a class if one of its bases is a guest class; returns whether it is."""
        for base in node.bases:
            own = base.id if isinstance(base, ast.Name) else ""
            kind = self.kind(module.names.raw(base), f"{module.dotted}.{own}")
            if kind is not None:
                self.kinds[f"{module.dotted}.{node.name}"] = kind
                return True
        return False

    def kind(self, dotted: str | None, own: str = "") -> str | None:
        """ "hook", "listener" or "callback" for a class or a function that makes one.

        `dotted` is its name as imported, `own` that of a class of the module itself.
        None where it is not certain.
        """
        if dotted is None:
            return self.kinds.get(own)
        place, _, last = dotted.rpartition(".")
        root = place.partition(".")[0]
        if last == "CheckpointSaverListener":
            return "listener"
        if last == "SessionRunHook" or (root in _OF_HOOKS and last.endswith(_HOOKS)):
            return "hook"
        if root in _KERAS and (last == "Callback" or "callbacks" in place.split(".")):
            return "callback"
        names = (n for n in self.kinds if n == dotted or n.endswith(f".{dotted}"))
        return self.kinds.get(next(names, ""))


def find(guests: Guests, modules: Collection[Module]) -> Iterator[Finding]:
    """The guest classes of some modules."""
    for module, node in guests.classes:
        kind = guests.kinds.get(f"{module.dotted}.{node.name}")
        if kind is None or module not in modules:
            continue
        details = {"kind": kind, **fingerprint(node)}
        code, way = "HOOK_CLASS", "`hb.as_callbacks(...)`"
        if kind == "callback":
            code, way = "CALLBACK_CLASS", "`hb.as_hooks(...)`"
        elif kind == "listener":
            way = f"goes with its CheckpointSaverHook through {way}"
        elif details["adds_ops"]:
            way += "; what `begin` adds is made on the live graph"
        yield module.finding(node, code, node.name, way, details=details)


def fingerprint(node: ast.ClassDef) -> dict[str, Any]:
    """What a guest class does, as far as its source shows."""
    methods = {n.name: n for n in node.body if isinstance(n, ast.FunctionDef)}
    inside = [n for method in methods.values() for n in ast.walk(method)]
    attributes = {n.attr for n in inside if isinstance(n, ast.Attribute)}
    calls = [n for n in inside if isinstance(n, ast.Call)]
    called = {last_name(call.func) for call in calls}
    words = {keyword.arg for call in calls for keyword in call.keywords}
    before = list(ast.walk(methods["before_run"])) if "before_run" in methods else []
    asks = [n for n in before if isinstance(n, ast.Call)]
    asks = [call for call in asks if last_name(call.func) == "SessionRunArgs"]
    texts = [n.value for n in inside if isinstance(n, ast.Constant)]
    return {
        "methods": [n for n in methods if n in HOOK_METHODS or n.startswith("on_")],
        "adds_ops": "begin" in methods and _makes_ops(methods["begin"]),
        "fetches": any(call.args or _has(call, "fetches") for call in asks),
        "feeds": any(_has(call, "feed_dict") or len(call.args) > 1 for call in asks),
        "uses_session": "session" in attributes
        or bool({"run", "run_step_fn"} & called and "end" in methods),
        "stops": "request_stop" in called or "stop_training" in attributes,
        "by_name": bool({"get_tensor_by_name", "get_operation_by_name"} & called)
        or any(isinstance(t, str) and t.endswith(":0") for t in texts),
        "counts": any(isinstance(n, ast.AugAssign) for n in inside)
        or "global_step" in attributes | words,
        "writes_files": bool(_WRITERS & (called | attributes)),
    }


def _has(call: ast.Call, name: str) -> bool:
    return any(keyword.arg == name for keyword in call.keywords)


def _makes_ops(begin: ast.FunctionDef) -> bool:
    """Whether `begin` calls TensorFlow for more than look-ups."""
    looks_up = ("get_", "Timer")
    return any(
        isinstance(n, ast.Call)
        and isinstance(n.func, ast.Attribute)
        and not n.func.attr.startswith(looks_up)
        and ast.unparse(n.func).partition(".")[0] in ("tf", "v1", "tf1", "tensorflow")
        for n in ast.walk(begin)
    )
