"""The graph that hooks see has variables for whoever looks for them."""

from __future__ import annotations

import gc
import re
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hook_fetching import X, Y, hook_of, sequential

import hookbridge as hb

ONE_KERAS = True

v1: Any = tf.compat.v1
train: Any = v1.train
PARTS = ("", "/Read/ReadVariableOp", "/current_value", "/Assign", "/IsInitialized")
TYPES = ["Placeholder", "ReadVariableOp", "Identity", "AssignVariableOp"]
TYPES += ["VarIsInitializedOp"]


def looking(look: Callable[[Any], Any], event: str = "begin") -> Any:
    """Calls `look(graph)` in an event; keeps the result."""

    def method(self: Any, *_: Any) -> None:
        self.seen = look(v1.get_default_graph())

    events: dict[str, Any] = {event: method}
    return hook_of(**events)


def fit(model: Any, *hooks: Any) -> None:
    model.fit(X, Y, batch_size=16, verbose=0, callbacks=hb.as_callbacks([*hooks]))


def short(name: str) -> str:
    """A variable's name without the numbers that Keras appends to layers' names."""
    return re.sub(r"_\d+(?=/)", "", name.split(":")[0])


def collections(graph: Any) -> dict[str, list[str]]:
    keys = ("variables", "trainable_variables", "local_variables", "global_step")
    return {k: [short(v.name) for v in graph.get_collection(k)] for k in keys}


def kernel_of(graph: Any) -> str:
    """The name of a weight, without looking at it."""
    return next(str(n) for n in graph.variables.saved() if n.endswith("kernel"))


def by_name(graph: Any) -> Any:
    """Looks under the names of a variable's parts, with contexts of its own."""
    name = kernel_of(graph)
    mine = tf.constant(1.0, name=name)
    assert mine.op.name == f"{name}_1"  # names of variables are taken
    with v1.name_scope("mine"), tf.control_dependencies([tf.no_op()]):
        read = graph.get_tensor_by_name(f"{name}:0")
    assert list(read.op.control_inputs) == []
    tensor = graph.get_tensor_by_name(f"{name}/Read/ReadVariableOp:0")
    (same,) = [v for v in v1.global_variables() if v.op.name == name]
    assert same.value() is not None and same._graph_element is tensor
    assert types_of_parts(graph) == TYPES
    return collections(graph)


def types_of_parts(graph: Any) -> list[str]:
    name = kernel_of(graph)
    with pytest.raises(KeyError, match="kernel/None"):
        graph.get_tensor_by_name(f"{name}/None:0")
    return [graph.get_operation_by_name(name + part).type for part in PARTS]


def with_own(graph: Any) -> Any:
    v1.get_variable("own", initializer=1.0, use_resource=True)
    found = collections(graph)
    assert found["variables"].pop() == found["trainable_variables"].pop() == "own"
    return found


def by_listing(graph: Any) -> Any:
    name = kernel_of(graph)
    assert {op.name for op in graph.get_operations()} >= {name + p for p in PARTS}
    return collections(graph)


def test_who_looks_first_changes_nothing(keras: Any) -> None:
    """In collections, by name, with a variable of its own, or by listing."""
    model = sequential(keras)
    hooks = [looking(each) for each in (collections, by_name, with_own, by_listing)]
    late = looking(types_of_parts, "after_run")
    for hook in hooks:
        fit(model, hook, late)
        assert hook.seen == hooks[0].seen
        assert late.seen == TYPES
    found = hooks[0].seen
    names = [getattr(w, "path", w.name) for w in model.trainable_weights]
    weights = [short(name.removeprefix(f"{model.name}/")) for name in names]
    assert found["variables"][0] == "global_step" == found["global_step"][0]
    assert found["variables"][1 : len(weights) + 1] == weights
    assert found["trainable_variables"] == weights
    assert all(name.startswith("metrics/") for name in found["local_variables"])
    every = [*found["variables"], *found["local_variables"]]
    assert len(set(every)) == len(every)


def test_a_session_prepares_variables_of_hooks_only(keras: Any) -> None:
    """The model's variables keep their values, even if a hook initializes them."""

    def begin(self: Any) -> None:
        variable = v1.get_variable("own", initializer=3.0, use_resource=True)
        self.add = v1.assign_add(variable, 1.0)

    def initialize(self: Any, session: Any, coord: Any) -> None:
        self.first = float(session.run(self.add))
        session.run([v.initializer for v in v1.global_variables()[:-1]])

    model = sequential(keras)
    hook = hook_of(begin=begin, after_create_session=initialize)
    before = model.get_weights()
    stop = train.StopAtStepHook(num_steps=1)
    model.evaluate(X, Y, verbose=0, callbacks=hb.as_callbacks([hook, stop]))
    assert hook.first == 4.0
    for one, other in zip(before, model.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.slow
def test_many_fits_keep_nothing(keras: Any, tmp_path: Path) -> None:
    model = sequential(keras)
    graphs: list[Any] = []

    def objects(fits: int) -> int:
        for _ in range(fits):
            hook = looking(lambda graph: graphs.append(weakref.ref(graph)))
            stock = [
                train.CheckpointSaverHook(str(tmp_path), save_steps=100),
                train.LoggingTensorHook(["loss:0"], every_n_iter=1),
            ]
            fit(model, *stock, hook)
        gc.collect()
        # The number of Python's own objects grows with each `fit`, even without hooks.
        packages = [
            str(type(each).__module__).split(".")[0] for each in gc.get_objects()
        ]
        return sum(package in ("tensorflow", "hookbridge") for package in packages)

    before = objects(3)
    assert objects(6) - before < 3  # less than one object for two fits
    assert sum(graph() is not None for graph in graphs) <= 2
