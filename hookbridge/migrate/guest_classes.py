"""Hook and callback classes of a source tree, each with a fingerprint."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from hookbridge.migrate.findings import Finding
from hookbridge.migrate.names import Names
from hookbridge.migrate.rules import found_at
from hookbridge.migrate.sources import Source

HOOK_METHODS = ("begin", "after_create_session", "before_run", "after_run", "end")
_KERAS = ("tensorflow", "keras", "tf_keras")
_WRITERS = frozenset(
    {"FileWriter", "open", "GFile", "makedirs", "add_summary", "save", "dump", "write"}
)


@dataclass(frozen=True)
class Module:
    """A source and the names that it binds."""

    source: Source
    names: Names

    @property
    def dotted(self) -> str:
        """The module's path as a dotted name: `pkg/hooks.py` is `pkg.hooks`."""
        parts = PurePath(self.source.file).with_suffix("").parts
        return ".".join(p for p in parts if p not in ("/", "."))


def find(modules: Sequence[Module]) -> Iterator[Finding]:
    """The guest classes of all modules; subclasses are followed across files."""
    classes = [
        (module, node)
        for module in modules
        for node in module.source.nodes
        if isinstance(node, ast.ClassDef)
    ]
    known = _known(classes)
    for module, node in classes:
        kind = known.of(module.dotted, node.name)
        if kind is not None:
            yield _finding(module.source, node, kind)


def kinds(modules: Sequence[Module]) -> dict[str, str]:
    """`{dotted name: "hook", "listener" or "callback"}` of all guest classes."""
    classes = [
        (module, node)
        for module in modules
        for node in module.source.nodes
        if isinstance(node, ast.ClassDef)
    ]
    known = _known(classes)
    return {
        f"{module.dotted}.{node.name}": kind
        for module, node in classes
        if (kind := known.of(module.dotted, node.name)) is not None
    }


def _known(classes: Sequence[tuple[Module, ast.ClassDef]]) -> _Kinds:
    """All guests among the classes; a base class may come after its subclasses."""
    known = _Kinds()
    waiting = classes
    while waiting:
        left = [pair for pair in waiting if not known.add(*pair)]
        if len(left) == len(waiting):
            break  # the classes that are left derive from no guest
        waiting = left
    return known


class _Kinds:
    """Which classes of the tree are guests, found by their bases."""

    def __init__(self) -> None:
        self._found: dict[str, dict[str, str]] = {}  # class -> module -> kind

    def of(self, module: str, name: str) -> str | None:
        return self._found.get(name, {}).get(module)

    def add(self, module: Module, node: ast.ClassDef) -> bool:
        """Notes a class if one of its bases is a guest class; returns whether it is."""
        for base in node.bases:
            kind = self._kind(base, module)
            if kind is not None:
                self._found.setdefault(node.name, {})[module.dotted] = kind
                return True
        return False

    def _kind(self, base: ast.expr, module: Module) -> str | None:
        """ "hook", "listener" or "callback", by the name of a base class."""
        dotted = module.names.raw(base)
        if dotted is None:
            own = base.id if isinstance(base, ast.Name) else ""
            return self.of(module.dotted, own)
        place, _, last = dotted.rpartition(".")
        if last == "CheckpointSaverListener":
            return "listener"
        root = place.partition(".")[0]
        if last == "SessionRunHook" or (
            root in ("tensorflow", "tensorflow_estimator") and last.endswith("Hook")
        ):
            return "hook"
        if root in _KERAS and (last == "Callback" or "callbacks" in place.split(".")):
            return "callback"
        for where, kind in self._found.get(last, {}).items():
            if where == place or where.endswith(f".{place.lstrip('.')}"):
                return kind
        return None


def _finding(source: Source, node: ast.ClassDef, kind: str) -> Finding:
    details = {"kind": kind, **fingerprint(node)}
    if kind == "callback":
        way = "`hb.as_hooks(...)`"
        return found_at(source, node, "CALLBACK_CLASS", node.name, way, details=details)
    way = "`hb.as_callbacks(...)`"
    if kind == "listener":
        way = "goes with its CheckpointSaverHook through `hb.as_callbacks(...)`"
    elif details["adds_ops"]:
        way += "; what `begin` adds is made on the live graph"
    return found_at(source, node, "HOOK_CLASS", node.name, way, details=details)


def fingerprint(node: ast.ClassDef) -> dict[str, Any]:
    """What a guest class does, as far as its source shows.

    Args:
      node: the class.

    Returns:
      methods: the events that it overrides; adds_ops, fetches, feeds, uses_session,
      stops, by_name, counts, writes_files: whether the class does that.
    """
    methods = {n.name: n for n in node.body if isinstance(n, ast.FunctionDef)}
    events = [
        name for name in methods if name in HOOK_METHODS or name.startswith("on_")
    ]
    inside = [n for method in methods.values() for n in ast.walk(method)]
    attributes = {n.attr for n in inside if isinstance(n, ast.Attribute)}
    called = {_last(n.func) for n in inside if isinstance(n, ast.Call)}
    words = {
        keyword.arg for n in inside if isinstance(n, ast.Call) for keyword in n.keywords
    }
    before = methods.get("before_run")
    asks = [] if before is None else _run_args(before)
    begin = methods.get("begin")
    texts = [n.value for n in inside if isinstance(n, ast.Constant)]
    return {
        "methods": events,
        "adds_ops": begin is not None and _makes_ops(begin),
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


def _run_args(method: ast.FunctionDef) -> list[ast.Call]:
    return [
        n
        for n in ast.walk(method)
        if isinstance(n, ast.Call) and _last(n.func) == "SessionRunArgs"
    ]


def _last(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _has(call: ast.Call, name: str) -> bool:
    return any(keyword.arg == name for keyword in call.keywords)


def _makes_ops(begin: ast.FunctionDef) -> bool:
    """Whether `begin` calls TensorFlow for more than look-ups."""
    looks_up = ("get_", "Timer")
    return any(
        isinstance(n, ast.Call)
        and isinstance(n.func, ast.Attribute)
        and not n.func.attr.startswith(looks_up)
        and _root(n.func) in ("tf", "v1", "tf1", "tensorflow")
        for n in ast.walk(begin)
    )


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
