"""Inputs of towers: sparse, arrays, of unknown size; the first batch; reductions."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from replicated_model import assert_same_values, trained

import hookbridge as hb
from hookbridge.jobs.loops.towers.inputs import (
    check_first_batch,
    split_any_batch,
    split_batch,
)

v1 = tf.compat.v1

WORDS = 7
ROWS = [[1], [2, 3], [], [4, 4, 5], [6], [0, 1], [2], [3, 6, 0]]


def sparse_rows(rows: list[list[int]], *, known: bool) -> Any:
    indices = [[i, j] for i, row in enumerate(rows) for j in range(len(row))]
    shape = np.array([len(rows), 3], np.int64)
    return tf.SparseTensor(
        tf.constant(indices, tf.int64),
        tf.constant([word for row in rows for word in row], tf.int64),
        shape if known else v1.placeholder_with_default(shape, [2]),
    )


def model_fn(features: Any, labels: Any, mode: str) -> Any:
    """A bag-of-words model whose words are a sparse tensor."""
    start = v1.glorot_uniform_initializer(seed=1)
    table = v1.get_variable("table", [WORDS, 2], initializer=start)
    words = features["words"]
    logits = tf.nn.embedding_lookup_sparse(table, words, None, combiner="sum")
    # The lookup gives no logits for rows without words at the end of a shard.
    size = tf.shape(features["x"])[0]
    logits = tf.pad(logits, [[0, size - tf.shape(logits)[0]], [0, 0]]) + features["x"]
    loss = tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    )
    train_op = v1.train.GradientDescentOptimizer(0.5).minimize(
        loss, global_step=v1.train.get_global_step()
    )
    return hb.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def batch(known: bool = True) -> Any:
    words = sparse_rows(ROWS, known=known)
    # Arrays may be given directly.
    return {"words": words, "x": np.ones([8, 2], np.float32)}, np.arange(8) % 2


def test_sparse_features_are_split() -> None:
    _, one = trained(model_fn, batch)
    replicated = hb.replicate_model_fn(model_fn, num_towers=4)
    for known in (True, False):
        _, values = trained(replicated, functools.partial(batch, known))
        assert_same_values(values, one)


def test_shards_of_sparse_and_dense_tensors_fit_together() -> None:
    with tf.Graph().as_default(), v1.Session() as session:
        batch = {"s": sparse_rows(ROWS[:5], known=False), "d": tf.range(5.0)}
        shards, sizes = split_any_batch(batch, 2)
        dense = [(tf.sparse.to_dense(s["s"], -1), s["d"]) for s in shards]
        (first, second), counted = session.run((dense, sizes))
        assert counted == [3, 2]
        assert first[1].tolist() == [0, 1, 2] and second[1].tolist() == [3, 4]
        assert first[0].tolist() == [[1, -1, -1], [2, 3, -1], [-1, -1, -1]]
        assert second[0].tolist() == [[4, 4, 5], [6, -1, -1]]
        # Where all shards have to be of one size, five rows are no batch for two.
        with pytest.raises(hb.errors.InvalidArgumentError, match="batch of 5 examples"):
            split_batch(sparse_rows(ROWS[:5], known=True), 2)
        shards = split_batch(sparse_rows(ROWS[:5], known=False), 2)
        with pytest.raises(tf.errors.InvalidArgumentError, match="does not divide"):
            session.run(shards[0])


def test_reductions_of_tf_1(subtests: pytest.Subtests) -> None:
    def loss_of(reduction: str) -> float:
        with tf.Graph().as_default(), v1.Session() as session:
            v1.train.create_global_step()
            replicated = hb.replicate_model_fn(
                model_fn, ["/device:CPU:0"] * 2, loss_reduction=reduction
            )
            spec = replicated(*batch(), "train")
            session.run(v1.global_variables_initializer())
            return float(session.run(spec.loss))

    mean, kinds = loss_of("mean"), v1.losses.Reduction
    assert loss_of("sum") == loss_of(kinds.SUM) == pytest.approx(2 * mean)
    for name in ("MEAN", "SUM_OVER_BATCH_SIZE", "SUM_BY_NONZERO_WEIGHTS"):
        with subtests.test(str(name)):
            assert loss_of(getattr(kinds, name)) == pytest.approx(mean)
    optimizer = v1.train.GradientDescentOptimizer(0.1)
    for wrapped in (optimizer, lambda: optimizer):
        with subtests.test(str(wrapped)):
            assert hb.TowerOptimizer(wrapped) is optimizer


X = np.arange(8, dtype=np.float32)


def of_any_rank() -> Any:
    def any_rank(x: Any) -> Any:
        return tf.numpy_function(lambda value: value, [x], tf.float32)

    return tf.data.Dataset.from_tensor_slices(X).batch(8).map(any_rank)


def looked_up() -> Any:
    """Data with a table, whose initializer has to run first."""
    keys = tf.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([1, 2]))
    table = tf.lookup.StaticHashTable(keys, default_value=0)
    words = tf.data.Dataset.from_tensor_slices(["a", "b", "a", "b", "a"])
    return words.map(table.lookup).batch(5)


def test_a_batch_that_does_not_divide(subtests: pytest.Subtests) -> None:
    read: list[int] = []

    def note(x: Any) -> Any:
        read.append(len(x))
        return x

    def noted(drop_remainder: bool) -> Any:
        dataset = tf.data.Dataset.from_tensor_slices(X).batch(8, drop_remainder)
        noted = dataset.map(lambda x: (x, tf.numpy_function(note, [x], tf.float32)))
        return noted.map(lambda x, y: (x, {"y": tf.ensure_shape(y, x.shape)}))

    for data in (looked_up, of_any_rank, lambda: noted(False), lambda: noted(True)):
        with subtests.test(str(data)):
            read.clear()
            with pytest.raises(hb.errors.InvalidArgumentError, match="for 3 towers"):
                check_first_batch(data, 3)
    assert read == []  # the size was known
    check_first_batch(lambda: noted(False), 4)
    assert read == [8]
    check_first_batch(looked_up, 1)
    # What is not known passes; training meets an error in the data again.
    check_first_batch(lambda: noted(False).take(0), 3)
    check_first_batch(lambda: tf.data.Dataset.from_tensors({"scalar": 1.0}), 3)
    check_first_batch(
        lambda: of_any_rank().map(lambda x: tf.debugging.check_numerics(x / 0.0, "")), 3
    )
