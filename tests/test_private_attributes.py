"""Canaries: every private attribute that we read is on its owner, and is listed.

After an upgrade, a failure here names what moved. Users get no promise from this.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from private_attributes import ATTRIBUTES, KERAS_VERSION
from source_trees import Nodes, nodes_of, sources

import hookbridge as hb

v1: Any = tf.compat.v1
HAS_KERAS_3 = KERAS_VERSION >= (3, 0)
# Older releases of Keras 3 lack some of the names, and do without (docs/versions.md).
HAS_NAMES_OF_KERAS_3 = KERAS_VERSION >= (3, 7)
# Names of Python's own library.
PYTHON = {"_asdict", "_current_frames", "_exit", "_getframe", "_fields", "_replace"}


def _coordinator(name: str) -> Any:
    package = "tensorflow.python.distribute.coordinator.cluster_coordinator"
    return getattr(importlib.import_module(package), name)


def _remote_value() -> Any:
    return _coordinator("RemoteValueImpl")(None, tf.TensorSpec([]))


def _in_graph(make: Callable[[], Any]) -> Any:
    with tf.Graph().as_default():
        return make()


def _keras(number: int) -> Any:
    three = number == 3 or not HAS_KERAS_3
    return importlib.import_module("keras" if three else "tf_keras")


def _model(number: int) -> Any:
    keras = _keras(number)
    model = keras.Sequential([keras.layers.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    return model


def _session_creator() -> Any:
    with v1.train.MonitoredSession() as session:
        return session._coordinated_creator


def _data_handler() -> Any:
    package = f"{_keras(2).__name__}.src.engine.data_adapter"
    handler = importlib.import_module(package).DataHandler
    return handler(np.zeros((2, 2)), model=_model(2))


def _graph_model() -> Any:
    with tf.Graph().as_default():
        model = _model(2)
        model._make_train_function()
        model.get_weights()
    return model


def _estimator(folder: Path) -> Any:
    return hb.estimator.Estimator(lambda features, labels: None, str(folder))


def _estimator_module(name: str) -> Any:
    hb.estimator.Estimator  # noqa: B018 - makes the package importable
    return importlib.import_module(f"tensorflow_estimator.python.estimator.{name}")


def _estimator_code() -> Any:
    """An object with every private name that the Estimator's source uses."""
    source = inspect.getsource(_estimator_module("estimator"))
    return types.SimpleNamespace(**dict.fromkeys(re.findall(r"\b_\w+", source)))


def _scaled_optimizer() -> Any:
    keras = _keras(2)
    return keras.mixed_precision.LossScaleOptimizer(keras.optimizers.SGD(0.1))


def _mixed_variable() -> Any:
    layer = _keras(2).layers.Dense(1, dtype="mixed_float16")
    layer.build([1, 1])
    return layer.kernel


# One object for each owner, or its class where an object needs a cluster.
OWNERS: dict[str, Callable[[Path], Any]] = {
    "CheckpointSaverHook": lambda d: v1.train.CheckpointSaverHook(str(d), save_steps=1),
    "MonitoredSession's creator": lambda _: _in_graph(_session_creator),
    "v1 optimizer": lambda _: v1.train.AdamOptimizer(),
    "Saver": lambda _: _in_graph(lambda: v1.train.Saver([v1.get_variable("v", [])])),
    "SummarySaverHook": lambda folder: v1.train.SummarySaverHook(
        save_steps=1, output_dir=str(folder), scaffold=v1.train.Scaffold()
    ),
    "FinalOpsHook": lambda _: v1.train.FinalOpsHook("loss:0"),
    "GlobalStepWaiterHook": lambda _: v1.train.GlobalStepWaiterHook(3),
    "SessionRunContext": lambda _: v1.train.SessionRunContext(None, None),
    "Session": lambda _: v1.Session(graph=tf.Graph()),
    "Operation": lambda _: _in_graph(lambda: tf.constant(1).op),
    "tf.function": lambda _: tf.function(abs),
    "Graph": lambda _: tf.Graph(),
    "graph variable": lambda _: _in_graph(
        lambda: v1.get_variable("v", [], use_resource=True)
    ),
    "ParameterServerStrategy": lambda _: tf.distribute.ParameterServerStrategy,
    "ClusterCoordinator": lambda _: _coordinator("ClusterCoordinator"),
    "RemoteValue": lambda _: _remote_value(),
    "PerWorkerValues": lambda _: tf.distribute.experimental.coordinator.PerWorkerValues(
        [_remote_value()]
    ),
    "Keras 2 model": lambda _: _model(2),
    "Keras 2 backend": lambda _: importlib.import_module(
        f"{_keras(2).__name__}.src.backend"
    ),
    "Keras 2 data handler": lambda _: _data_handler(),
    "Keras 2 graph model": lambda _: _graph_model(),
    "Keras 2 graph function": lambda _: _graph_model().train_function,
    "Keras 2 graph variable": lambda _: _graph_model().weights[0],
    "Keras 2 variable of mixed precision": lambda _: _mixed_variable(),
    "Keras 2 optimizer": lambda _: _keras(2).optimizers.SGD(0.1),
    "Keras 2 legacy optimizer": lambda _: _keras(2).optimizers.legacy.SGD(0.1),
    "Keras 2 scaled optimizer": lambda _: _scaled_optimizer(),
    "Keras 2 callback": lambda _: _keras(2).callbacks.Callback(),
    "TensorBoard of v1": lambda _: _in_graph(_keras(2).callbacks.TensorBoard),
    "Keras 2 callback's method": lambda _: (
        _keras(2).callbacks.Callback().on_train_batch_begin
    ),
    "Keras 3 callback's method": lambda _: (
        _keras(3).callbacks.Callback().on_train_batch_begin
    ),
    "Keras 3 EarlyStopping": lambda _: _keras(3).callbacks.EarlyStopping(),
    "Keras 3 model": lambda _: _model(3),
    "Keras 3 optimizer": lambda _: _keras(3).optimizers.SGD(0.1),
    "Keras 3 variable": lambda _: _model(3).weights[0],
    "Keras 3 metric": lambda _: _keras(3).metrics.MeanSquaredError(),
    "Keras 3 BackupAndRestore": lambda d: _keras(3).callbacks.BackupAndRestore(str(d)),
    "Estimator": _estimator,
    "Estimator's code": lambda _: _estimator_code(),
    "RunConfig": lambda folder: _estimator(folder).config,
    "Estimator's heads": lambda _: _estimator_module("canned.head"),
    "Estimator's run_config": lambda _: _estimator_module("run_config"),
    "Estimator's executor": lambda _: _estimator_module("training")._TrainingExecutor,
}


def has(owner: Any, name: str) -> bool:
    """Whether an object has an attribute, or a class gives it to its objects."""
    if hasattr(owner, name) or not inspect.isclass(owner):
        return hasattr(owner, name)
    return any(
        re.search(rf"self\.{name}\b[^=\n]*=[^=]", inspect.getsource(base))
        for base in owner.__mro__[:-1]
        if base.__module__.startswith("tensorflow.python.distribute")
    )


@pytest.mark.parametrize(
    "owner",
    [o for o in ATTRIBUTES if HAS_NAMES_OF_KERAS_3 or not o.startswith("Keras 3")],
)
def test_private_attributes_are_where_the_table_says(
    owner: str, tmp_path: Path
) -> None:
    value = OWNERS[owner](tmp_path)
    assert not {n: why for n, why in ATTRIBUTES[owner].items() if not has(value, n)}


def test_an_attribute_that_moved_is_missed() -> None:
    assert not has(tf.Graph(), "_moved")
    assert not has(_coordinator("ClusterCoordinator"), "_moved")


def _private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in PYTHON


def own_names(nodes: Nodes) -> Iterator[str]:
    """The classes, functions, variables and attributes of `self` in a file."""
    for node in nodes:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield from [node.attr] if ast.unparse(node.value) == "self" else []


def private_reads(nodes: Nodes) -> Iterator[str]:
    """Private attributes that a file reads or sets on objects other than `self`."""
    for node in nodes:
        if isinstance(node, ast.Attribute) and _private(node.attr):
            if ast.unparse(node.value) not in ("self", "cls", "super()"):
                yield node.attr
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "assign":
            yield from (k.arg for k in node.keywords if k.arg and _private(k.arg))
        elif isinstance(node, ast.Call) and len(node.args) > 1:
            name = str(getattr(node.args[1], "value", ""))
            asks = ast.unparse(node.func) in ("getattr", "hasattr", "setattr")
            yield from [name] if asks and _private(name) else []


def test_private_attributes_are_those_of_the_table() -> None:
    ours: set[str] = set()
    read: set[str] = set()
    words: set[str] = set()
    for nodes in sources().values():
        ours.update(own_names(nodes))
        read.update(private_reads(nodes))
        for node in nodes:
            if isinstance(node, ast.Attribute):
                words.add(node.attr)
            elif isinstance(node, ast.Constant):
                words.add(str(node.value))
    listed = set().union(*ATTRIBUTES.values())
    assert read - ours - listed == set()
    assert listed <= words | read  # no row is unused
    assert set(ATTRIBUTES) == set(OWNERS)


@pytest.mark.parametrize(
    "line",
    [
        "model._moved",
        "getattr(model, '_moved', 1)",
        "a.b._moved = 1",
        "assign(model, _moved=1)",
    ],
)
def test_the_search_finds_what_it_looks_for(line: str) -> None:
    assert list(private_reads(nodes_of(line))) == ["_moved"]
    assert "_moved" not in set(own_names(nodes_of(line)))
