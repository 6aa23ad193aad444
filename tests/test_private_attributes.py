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

import pytest
from private_attributes import ATTRIBUTES, KERAS_VERSION
from source_trees import Nodes, nodes_of, sources

HAS_KERAS_3 = KERAS_VERSION >= (3, 0)
# Older releases of Keras 3 lack some of the names, and do without (docs/versions.md).
HAS_NAMES_OF_KERAS_3 = KERAS_VERSION >= (3, 7)
# Names of Python's own library.
PYTHON = {"_asdict", "_exit", "_getframe", "_fields", "_replace"}


def _v1() -> Any:
    import tensorflow as tf

    return tf.compat.v1


def _coordinator(name: str) -> Any:
    package = "tensorflow.python.distribute.coordinator.cluster_coordinator"
    return getattr(importlib.import_module(package), name)


def _remote_value() -> Any:
    import tensorflow as tf

    return _coordinator("RemoteValueImpl")(None, tf.TensorSpec([]))


def _per_worker_values() -> Any:
    import tensorflow as tf

    return tf.distribute.experimental.coordinator.PerWorkerValues([_remote_value()])


def _strategy() -> Any:
    import tensorflow as tf

    # The class: an object needs a cluster.
    return tf.distribute.ParameterServerStrategy


def _tf_function() -> Any:
    import tensorflow as tf

    return tf.function(abs)


def _operation() -> Any:
    import tensorflow as tf

    with tf.Graph().as_default():
        return tf.constant(1).op


def _graph_variable() -> Any:
    import tensorflow as tf

    with tf.Graph().as_default():
        return _v1().get_variable("v", [], use_resource=True)


def _session() -> Any:
    import tensorflow as tf

    return tf.compat.v1.Session(graph=tf.Graph())


def _keras(number: int) -> Any:
    three = number == 3 or not HAS_KERAS_3
    return importlib.import_module("keras" if three else "tf_keras")


def _model(number: int) -> Any:
    keras = _keras(number)
    model = keras.Sequential([keras.layers.Dense(1)])
    model.build((None, 2))
    model.compile("sgd", "mse")
    return model


def _graph_model() -> Any:
    import tensorflow as tf

    keras = _keras(2)
    with tf.Graph().as_default():
        model = keras.Sequential([keras.layers.Dense(1, input_shape=(2,))])
        model.compile("sgd", "mse")
        model._make_train_function()
        model.get_weights()
    return model


def _estimator(folder: Path) -> Any:
    import hookbridge as hb

    def model_fn(features: Any, labels: Any) -> None:
        """Never called."""

    return hb.estimator.Estimator(model_fn, str(folder))


def _estimator_module(name: str) -> Any:
    import hookbridge as hb

    hb.estimator.Estimator  # noqa: B018 - makes the package importable
    return importlib.import_module(f"tensorflow_estimator.python.estimator.{name}")


def _estimator_code() -> Any:
    """An object with every private name that the Estimator's source uses."""
    source = inspect.getsource(_estimator_module("estimator"))
    return types.SimpleNamespace(**dict.fromkeys(re.findall(r"\b_\w+", source)))


def _v1_tensorboard() -> Any:
    import tensorflow as tf

    with tf.Graph().as_default():
        return _keras(2).callbacks.TensorBoard()


def _mixed_variable() -> Any:
    layer = _keras(2).layers.Dense(1, dtype="mixed_float16")
    layer.build([1, 1])
    return layer.kernel


# One object for each owner, or its class where an object needs a cluster.
OWNERS: dict[str, Callable[[Path], Any]] = {
    "tf.compat.v1": lambda _: _v1(),
    "CheckpointSaverHook": lambda folder: _v1().train.CheckpointSaverHook(
        str(folder), save_steps=1
    ),
    "SummarySaverHook": lambda folder: _v1().train.SummarySaverHook(
        save_steps=1, output_dir=str(folder), scaffold=_v1().train.Scaffold()
    ),
    "GlobalStepWaiterHook": lambda _: _v1().train.GlobalStepWaiterHook(3),
    "SessionRunContext": lambda _: _v1().train.SessionRunContext(None, None),
    "Session": lambda _: _session(),
    "Operation": lambda _: _operation(),
    "tf.function": lambda _: _tf_function(),
    "Graph": lambda _: _operation().graph,
    "graph variable": lambda _: _graph_variable(),
    "ParameterServerStrategy": lambda _: _strategy(),
    "ClusterCoordinator": lambda _: _coordinator("ClusterCoordinator"),
    "RemoteValue": lambda _: _remote_value(),
    "PerWorkerValues": lambda _: _per_worker_values(),
    "Keras 2 model": lambda _: _model(2),
    "Keras 2 graph model": lambda _: _graph_model(),
    "Keras 2 graph function": lambda _: _graph_model().train_function,
    "Keras 2 graph variable": lambda _: _graph_model().weights[0],
    "Keras 2 variable of mixed precision": lambda _: _mixed_variable(),
    "Keras 2 optimizer": lambda _: _keras(2).optimizers.SGD(0.1),
    "Keras 2 legacy optimizer": lambda _: _keras(2).optimizers.legacy.SGD(0.1),
    "Keras 2 callback": lambda _: _keras(2).callbacks.Callback(),
    "TensorBoard of v1": lambda _: _v1_tensorboard(),
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
    "Keras 3 BackupAndRestore": lambda folder: _keras(3).callbacks.BackupAndRestore(
        str(folder)
    ),
    "Estimator": _estimator,
    "Estimator's code": lambda _: _estimator_code(),
    "RunConfig": lambda folder: _estimator(folder).config,
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
    assert not has(_operation(), "_moved")
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
