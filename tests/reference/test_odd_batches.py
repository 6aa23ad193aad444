"""Batches of rows of unequal length and of texts, recorded and compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from one_keras import one_keras
from recorded_fits import first_difference, recorded

import hookbridge as hb
from hookbridge.reference.recordings.recording_files import Recording

v1: Any = tf.compat.v1


ROWS = [[1, 2, 3], [4], [1, 1], [2, 3, 4, 0]]


def rows_of(kind: str) -> Any:
    rows: Any = tf.ragged.constant(ROWS)
    return rows if kind == "ragged" else rows.to_sparse()


@one_keras
@pytest.mark.parametrize("kind", ["ragged", "sparse"])
def test_ragged_and_sparse_batches(keras: Any, kind: str, tmp_path: Path) -> None:
    """All of their parts are recorded, in `fit` and of a session's data set."""
    labels = np.arange(4, dtype="float32")
    words = {"words": rows_of(kind)}
    data = tf.data.Dataset.from_tensor_slices((words, labels)).batch(2)

    class Sums(keras.Model):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.table = keras.layers.Embedding(5, 2, name="table")

        def call(self, inputs: Any, training: bool = False) -> Any:
            words = inputs["words"]
            if kind == "sparse":
                words = tf.sparse.to_dense(words)
            elif isinstance(words, tf.RaggedTensor):
                words = words.to_tensor()
            return tf.reduce_sum(self.table(words), [1, 2])

    model = Sums()
    model.compile("sgd", "mse")
    if keras.__version__.startswith("3"):
        model.table.build((None, None))
    first = Recording(recorded(model, tmp_path / "fit", data)).steps[0]
    batch = first.arrays("batch")
    assert batch["x/words/values"].tolist() == [1, 2, 3, 4]
    if kind == "ragged":
        assert batch["x/words/row_splits"].tolist() == [0, 3, 4]
    else:
        assert batch["x/words/shape"].tolist() == [2, 4]

    with tf.Graph().as_default():
        again = tf.data.Dataset.from_tensor_slices((rows_of(kind), labels)).batch(2)
        ids, y = v1.data.make_one_shot_iterator(again).get_next()
        table = v1.get_variable("table", [5, 2])
        if kind == "ragged":
            sums = tf.reduce_sum(tf.gather(table, ids), [1, 2])
        else:
            looked_up = tf.nn.embedding_lookup_sparse(table, ids, None, combiner="sum")
            sums = tf.reduce_sum(looked_up, 1)
        loss = tf.reduce_mean((sums - y) ** 2)
        train_op = v1.train.AdagradOptimizer(0.1).minimize(loss)
        guests = [hb.recorder(tmp_path / "session")]
        with v1.train.MonitoredTrainingSession(hooks=guests) as session:
            session.run(train_op)
    arrays = Recording(tmp_path / "session").steps[0].arrays("batch").values()
    assert [1, 2, 3, 4] in [array.tolist() for array in arrays]
    assert len(arrays) == (3 if kind == "ragged" else 4)


def test_strings(tmp_path: Path) -> None:
    """They are bytes in the recording, and are compared one by one."""
    texts = np.array([["a", "bc"], ["d", "a"]], object)
    folders = []
    for name, value in (("run", "bc"), ("same", "bc"), ("other", "b")):
        texts[0, 1] = value
        with tf.Graph().as_default():
            x = v1.placeholder(tf.string, [None, 2], "x")
            w = v1.get_variable("w", initializer=2.0)
            lengths = tf.cast(tf.strings.length(x), tf.float32)
            train_op = v1.train.AdamOptimizer(0.1).minimize(
                tf.reduce_mean(w * lengths) ** 2
            )
            folders.append(tmp_path / name)
            guests = [hb.recorder(folders[-1])]
            with v1.train.MonitoredTrainingSession(hooks=guests) as session:
                session.run(train_op, {x: texts})
    assert next(hb.replay(folders[0]).batches)["x"].tolist()[0] == [b"a", b"bc"]
    assert hb.compare(*folders[:2]).is_same
    assert first_difference(hb.compare(folders[0], folders[2])) == ("data", 1, "x")
