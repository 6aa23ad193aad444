"""Checkpoints that callbacks cause have the names that a `Saver` gives variables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import estimator_scenarios as scenarios
import numpy as np
import pytest
import tensorflow as tf
from callback_recorder import callback_of

import hookbridge as hb
from hookbridge.adapters.session_graph import saved

ONE_KERAS = True

v1 = tf.compat.v1
STEPS = 2
AGES = [[20.0], [40.0]]


def rows() -> Any:
    data = ({"age": AGES}, [[0], [1]])
    return tf.data.Dataset.from_tensors(data).repeat()


def partitioned(folder: Path, parts: int = 2) -> Any:
    """An Estimator whose weight `w` is kept in parts, with a table in its graph."""

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        weight = v1.get_variable(
            "w", [4, 1], partitioner=v1.fixed_size_partitioner(parts)
        )
        matrix = tf.convert_to_tensor(weight)
        error = tf.concat([features["age"]] * 4, 1) @ matrix - tf.cast(labels, "float")
        loss = tf.reduce_mean(error**2)
        step = v1.train.get_global_step()
        train_op = v1.train.GradientDescentOptimizer(1e-5).minimize(loss, step)
        return hb.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    return hb.estimator.Estimator(model_fn, str(folder))


@pytest.mark.parametrize("parts", [1, 3])
def test_validation_with_a_variable_in_parts(parts: int, tmp_path: Path) -> None:
    estimator = partitioned(tmp_path, parts)
    scenarios.check_validation(estimator, rows, rows, 2 * STEPS, steps_per_epoch=STEPS)


def test_weights_in_parts_are_saved_as_a_saver_does(keras: Any, tmp_path: Path) -> None:
    """A file of one partitioning loads into a graph with another."""
    path, kept, loaded = str(tmp_path / "weights"), list[Any](), list[Any]()

    def save(self: Any, logs: Any) -> None:
        self.model.save_weights(path)
        kept.extend(self.model.get_weights())

    def load(self: Any, logs: Any) -> None:
        self.model.load_weights(path)
        loaded.extend(self.model.get_weights())

    for name, parts, guest in (
        ("two", 2, callback_of(keras, on_train_end=save)),
        ("four", 4, callback_of(keras, on_train_begin=load)),
    ):
        estimator = partitioned(tmp_path / name, parts)
        estimator.train(rows, steps=STEPS, hooks=hb.as_hooks(guest))
    assert [w.shape for w in kept] == [(2, 1), (2, 1)]
    written = tf.train.load_checkpoint(path)
    native = tf.train.load_checkpoint(tf.train.latest_checkpoint(tmp_path / "two"))
    np.testing.assert_array_equal(written.get_tensor("w"), native.get_tensor("w"))
    np.testing.assert_array_equal(np.concatenate(loaded), np.concatenate(kept))


def test_tables_are_saved_as_a_saver_does(tmp_path: Path) -> None:
    with tf.Graph().as_default() as graph:
        v1.get_variable("w", [4, 1], partitioner=v1.fixed_size_partitioner(2))
        table = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)
        v1.add_to_collection(v1.GraphKeys.SAVEABLE_OBJECTS, _saveable(table))
        fill = table.insert(["a"], tf.constant([7], tf.int64))
        saver = v1.train.Saver()
        by_default = saved.entries_of_graph(graph)
        by_saver = saved.entries_of_saver(saver, graph)
        with v1.Session() as session:
            session.run([v1.global_variables_initializer(), fill])
            native = saver.save(session, str(tmp_path / "native"))
            ours = [
                saved.write(str(tmp_path / name), session.run(entries))
                for name, entries in (("graph", by_default), ("saver", by_saver))
            ]
    expected = contents(native)
    assert len(expected) == 3
    for path in ours:
        np.testing.assert_equal(contents(path), expected)


def _saveable(table: Any) -> Any:
    from tensorflow.python.ops.lookup_ops import MutableHashTable

    return MutableHashTable._Saveable(table, table.name)


def contents(path: str) -> dict[str, Any]:
    reader = tf.train.load_checkpoint(path)
    return {name: reader.get_tensor(name) for name, _ in tf.train.list_variables(path)}
