"""Findings about calls: what runs differently, or under another name, on the target."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from hookbridge.migrate.findings import Finding
from hookbridge.migrate.names import Names
from hookbridge.migrate.rules import found_at
from hookbridge.migrate.sources import Source

_V1 = ("tf.", "tf.compat.v1.")
# Calls that need the v1 behaviour of TensorFlow: `_ANYWHERE` in all code,
# `_AT_MODULE_LEVEL` only outside of functions (an Estimator calls its functions inside
# a graph).
_ANYWHERE = frozenset(
    f"{prefix}{name}"
    for prefix in _V1
    for name in (
        *("Session", "InteractiveSession", "train.start_queue_runners", "FIFOQueue"),
        *("train.batch", "train.shuffle_batch", "train.string_input_producer"),
        *("train.slice_input_producer", "train.range_input_producer"),
        *("train.MonitoredTrainingSession", "train.MonitoredSession"),
        "train.SingularMonitoredSession",
    )
)
_AT_MODULE_LEVEL = frozenset(
    f"{prefix}{name}" for prefix in _V1 for name in ("placeholder", "get_variable")
)
# Their threads read variables, and in these threads no graph is the default one.
_WITH_THREADS = frozenset(
    {
        *(f"{prefix}train.Supervisor" for prefix in _V1),
        *("tf_slim.learning.train", "tf.contrib.slim.learning.train"),
    }
)
_SWITCHES = frozenset(
    f"tf.compat.v1.{name}"
    for name in ("disable_v2_behavior", "disable_eager_execution")
)
# Method -> its name today.
_METHODS = {"export_savedmodel": "export_saved_model"}
# (Method or function, old argument) -> what to write.
_ARGUMENTS = {
    ("add_meta_graph_and_variables", "legacy_init_op"): "main_op",
    ("add_meta_graph", "legacy_init_op"): "main_op",
    ("map", "num_threads"): "num_parallel_calls",
    ("map", "output_buffer_size"): "`.prefetch(...)` after the `map`",
}
_SERVERS = frozenset(f"{prefix}train.Server" for prefix in (*_V1, "tf.distribute."))
_SERVERS |= {"tf.distribute.Server"}
_DEVICE_WAY = "`tf.compat.v1.device(...)`"
_V1_WAY = "`tf.compat.v1.disable_v2_behavior()` first thing in the program"
_CLUSTER_WAY = "`hb.loops.SessionCluster`, whose processes end together"


def find(source: Source, names: Names) -> Iterator[Finding]:
    """The calls of one module for which a new name is not enough."""
    calls = [node for node in source.nodes if isinstance(node, ast.Call)]
    called = [(call, names.of(call.func) or "") for call in calls]
    if not any(name in _SWITCHES for _, name in called):
        yield from _v1_behaviour(source, called)
    for call, name in called:
        if name == "tf.device" and call.args and _may_be_function(call.args[0]):
            yield found_at(source, call, "DEVICE_FUNCTION", name, _DEVICE_WAY)
        elif name in _SERVERS:
            yield found_at(source, call, "CLUSTER", name, _CLUSTER_WAY)
        elif name in ("tf.train.Supervisor", "tf.compat.v1.train.Supervisor"):
            way = "`tf.compat.v1.train.MonitoredTrainingSession`"
            yield found_at(source, call, "SUPERVISOR", name, way)
        yield from _old_arguments(source, call)


def _v1_behaviour(
    source: Source, called: list[tuple[ast.Call, str]]
) -> Iterator[Finding]:
    """One finding for the first call in a module that needs v1 behaviour."""
    inside = _in_functions(source)
    needing = [
        (call, name)
        for call, name in called
        if name in _ANYWHERE or (name in _AT_MODULE_LEVEL and id(call) not in inside)
    ]
    if any(name in ("tf.Graph", "tf.compat.v1.Graph") for _, name in called):
        needing = []
    needing += [(call, name) for call, name in called if name in _WITH_THREADS]
    if not needing:
        return
    call, name = min(needing, key=lambda pair: pair[0].lineno)
    yield found_at(source, call, "V1_BEHAVIOUR", name, _V1_WAY)


def _in_functions(source: Source) -> set[int]:
    """The ids of the nodes inside functions, except inside a program's `main`."""
    is_program = "__main__" in source.text
    return {
        id(inner)
        for node in source.nodes
        if isinstance(node, ast.FunctionDef | ast.Lambda)
        and not (is_program and getattr(node, "name", "") == "main")
        for inner in ast.walk(node)
    }


def _may_be_function(node: ast.expr) -> bool:
    """Whether the argument of `tf.device` may be a function and not a name."""
    if isinstance(node, ast.Lambda):
        return True
    if isinstance(node, ast.Call):
        function = node.func
        last = function.attr if isinstance(function, ast.Attribute) else ""
        last = function.id if isinstance(function, ast.Name) else last
        return last.endswith(("setter", "_fn", "chooser"))
    last = node.id if isinstance(node, ast.Name) else ""
    last = node.attr if isinstance(node, ast.Attribute) else last
    return last.endswith(("setter", "_fn", "chooser"))


def _old_arguments(source: Source, call: ast.Call) -> Iterator[Finding]:
    if not isinstance(call.func, ast.Attribute):
        return
    method = call.func.attr
    if method in _METHODS:
        way = f"`{_METHODS[method]}`"
        yield found_at(source, call, "OLD_ARGUMENT", method, way)
    for keyword in call.keywords:
        new = _ARGUMENTS.get((method, keyword.arg or ""))
        if new is not None:
            name = f"{method}({keyword.arg}=)"
            way = new if " " in new else f"`{new}=`"
            yield found_at(source, call, "OLD_ARGUMENT", name, way)
