"""What needs the v1 behaviour of TensorFlow: sessions, queues, placeholders."""

from __future__ import annotations

import ast

from hookbridge.migrate.reading.names import Names
from hookbridge.migrate.reading.sources import Source

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


def needing(source: Source, names: Names) -> list[tuple[ast.AST, str]]:
    """The nodes of a file that need it, with what they are; first ones first."""
    calls = [node for node in source.nodes if isinstance(node, ast.Call)]
    called = [(call, names.of(call.func) or "") for call in calls]
    inside = _in_functions(source)
    found: list[tuple[ast.AST, str]] = [
        (call, name)
        for call, name in called
        if name in _ANYWHERE or (name in _AT_MODULE_LEVEL and id(call) not in inside)
    ]
    if any(name in ("tf.Graph", "tf.compat.v1.Graph") for _, name in called):
        found = []
    found += [(call, name) for call, name in called if name in _WITH_THREADS]
    return sorted(found, key=lambda pair: getattr(pair[0], "lineno", 0))


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
