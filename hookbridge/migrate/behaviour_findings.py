"""Findings about calls: what runs differently, or under another name, on the target."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from hookbridge.migrate.findings import Finding
from hookbridge.migrate.reading.evidence import Use
from hookbridge.migrate.reading.modules import Module
from hookbridge.migrate.reading.programs import Place
from hookbridge.migrate.target import Target

# Method -> its name today.
METHODS = {"export_savedmodel": "export_saved_model"}
# (Method or function, old argument) -> its name today; empty for a call of `prefetch`.
ARGUMENTS = {
    ("add_meta_graph_and_variables", "legacy_init_op"): "main_op",
    ("add_meta_graph", "legacy_init_op"): "main_op",
    ("map", "num_threads"): "num_parallel_calls",
    ("map", "output_buffer_size"): "",
}
_SERVERS = frozenset(
    ("tf.train.Server", "tf.compat.v1.train.Server", "tf.distribute.Server")
)
_SUPERVISORS = frozenset(("tf.train.Supervisor", "tf.compat.v1.train.Supervisor"))
_READERS = frozenset(
    f"{root}.{name}Reader"
    for root in ("tf", "tf.compat.v1")
    for name in ("TextLine", "WholeFile", "TFRecord", "FixedLengthRecord", "Identity")
)
_READER_WAY = '`tf.device("/cpu:0")` around readers and their queues'
_DEVICE_WAY = "`tf.compat.v1.device(...)`"
_KERAS2_WAY = "`TF_USE_LEGACY_KERAS=1` before TensorFlow is imported"
_V1_WAY = "`tf.compat.v1.disable_v2_behavior()` first thing in the program"
_CLUSTER_WAY = "`hb.loops.SessionCluster`, whose processes end together"


def find(module: Module, place: Place, target: Target) -> Iterator[Finding]:
    """The calls of one module for which a new name is not enough."""
    yield from _switches(module, place, target)
    for call in module.nodes:
        if isinstance(call, ast.With):
            yield from _readers_on_gpu(module, call)
        if not isinstance(call, ast.Call):
            continue
        name = module.names.of(call.func) or ""
        if name == "tf.device" and call.args and _may_be_function(call.args[0]):
            # A rewrite leaves `import tensorflow`, which parts of TensorFlow need.
            if not place.means_old or "tensorflow" in module.names.bound:
                yield module.finding(call, "DEVICE_FUNCTION", name, _DEVICE_WAY)
        elif name in _SERVERS:
            yield module.finding(call, "CLUSTER", name, _CLUSTER_WAY)
        elif name in _SUPERVISORS:
            way = "`tf.compat.v1.train.MonitoredTrainingSession`"
            yield module.finding(call, "SUPERVISOR", name, way)
        yield from _old_arguments(module, call)


def _switches(module: Module, place: Place, target: Target) -> Iterator[Finding]:
    """What the program of a main file needs and does not switch on itself."""
    meaning = place.of_main
    if place.is_run and meaning.switch is None:
        needs = meaning.needs_v1 or meaning.old
        yield from _switch(module, "V1_BEHAVIOUR", needs, _V1_WAY)
    if place.is_main and meaning.keras_choice is None and not target.has_estimator:
        yield from _switch(module, "KERAS2", meaning.keras2, _KERAS2_WAY)


def _switch(
    module: Module, code: str, needs: Use | None, way: str
) -> Iterator[Finding]:
    if needs is not None:
        line = needs.line if needs.file == module.file else 1
        yield module.finding(None, code, str(needs), way, first=line)


def _readers_on_gpu(module: Module, block: ast.With) -> Iterator[Finding]:
    """Queue readers in a block for a GPU; not those of functions that it calls."""
    for item in block.items:
        call = item.context_expr
        if not isinstance(call, ast.Call) or not call.args:
            continue
        if not (module.names.of(call.func) or "").endswith(".device"):
            continue
        if "gpu:" not in ast.unparse(call.args[0]).lower():
            continue
        for node in ast.walk(block):
            name = module.names.of(node.func) if isinstance(node, ast.Call) else None
            if name in _READERS:
                yield module.finding(node, "GPU_READER", str(name), _READER_WAY)


def _may_be_function(node: ast.expr) -> bool:
    """Whether the argument of `tf.device` may be a function and not a name."""
    if isinstance(node, ast.Lambda):
        return True
    function = node.func if isinstance(node, ast.Call) else node
    last = function.id if isinstance(function, ast.Name) else ""
    last = function.attr if isinstance(function, ast.Attribute) else last
    return last.endswith(("setter", "_fn", "chooser"))


def _old_arguments(module: Module, call: ast.Call) -> Iterator[Finding]:
    if not isinstance(call.func, ast.Attribute):
        return
    method = call.func.attr
    if method in METHODS:
        way = f"`{METHODS[method]}`"
        yield module.finding(call, "OLD_ARGUMENT", method, way)
    for keyword in call.keywords:
        new = ARGUMENTS.get((method, keyword.arg or ""))
        if new is not None:
            name = f"{method}({keyword.arg}=)"
            way = f"`{new}=`" if new else "`.prefetch(...)` after the `map`"
            yield module.finding(call, "OLD_ARGUMENT", name, way)
