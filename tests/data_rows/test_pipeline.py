"""Rows and pipelines: files to batches, and what happens to broken rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import hookbridge as hb

v1 = tf.compat.v1


def listed(folder: Path, sizes: list[int]) -> Path:
    """Writes files with `sizes` numbers, and a list of them with places as labels."""
    for place, size in enumerate(sizes):
        numbers = " ".join(str(place * 10 + n) for n in range(size))
        (folder / f"{place}.txt").write_text(numbers)
    path = folder / "list.csv"
    path.write_text("".join(f"{n}.txt,{n}\n" for n in range(len(sizes))))
    return path


class Numbers:
    """The numbers of one file, `[N]`."""

    def __call__(self, location: Any, label: Any) -> Any:
        words = tf.strings.split(tf.io.read_file(location), " ")
        return tf.strings.to_number(words), label


def pipeline(path: Path, **options: Any) -> hb.data.Pipeline:
    options = {"batch_size": 2, "locations": [0], "seed": 1, **options}
    return hb.data.Pipeline(hb.data.Rows(str(path)), Numbers(), **options)


def test_batches_are_padded_to_their_longest(tmp_path: Path) -> None:
    made = pipeline(listed(tmp_path, [1, 3, 2]))
    batches = list(made.dataset(training=False))
    assert [labels.numpy().tolist() for _, labels in batches] == [[0, 1], [2]]
    padded = [features.numpy().tolist() for features, _ in batches]
    assert padded == [[[0, 0, 0], [10, 11, 12]], [[20, 21]]]


def test_training_shuffles_and_repeats(tmp_path: Path) -> None:
    made = pipeline(listed(tmp_path, [1] * 5), batch_size=5)
    tf.random.set_seed(5)  # otherwise that of an earlier test counts
    data = made.dataset(training=True).take(6)
    epochs = [labels.numpy().tolist() for _, labels in data]
    assert all(sorted(epoch) == [0, 1, 2, 3, 4] for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) > 1
    again = [labels.numpy().tolist() for _, labels in data]
    with tf.Graph().as_default(), v1.Session() as session:
        v1.set_random_seed(5)
        batch = v1.data.make_one_shot_iterator(made.dataset(training=True)).get_next()
        in_graph = [session.run(batch[1]).tolist() for _ in range(6)]
    assert in_graph == epochs
    assert len(again) == 6


def test_workers_share_the_rows(subtests: pytest.Subtests, tmp_path: Path) -> None:
    path = listed(tmp_path, [1] * 6)
    for index, rows in enumerate(([0, 2, 4], [1, 3, 5])):
        with subtests.test(str(index)):
            made = pipeline(path, batch_size=3, shard=(2, index))
            (batch,) = made.dataset(training=True).take(1)
            assert sorted(batch[1].numpy().tolist()) == rows
            assert made.first_bad_row() is None


def test_towers_take_one_batch_each(tmp_path: Path) -> None:
    made = pipeline(listed(tmp_path, [1] * 4), batch_size=2)
    got: list[Any] = []

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        got.append(labels)
        weight = v1.get_variable("weight", [])
        step = v1.train.get_or_create_global_step()
        loss = weight * tf.reduce_sum(features)
        train_op = v1.train.GradientDescentOptimizer(0.1).minimize(loss, step)
        return hb.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    with tf.Graph().as_default():
        data = made.dataset(training=True)
        features, labels = v1.data.make_one_shot_iterator(data).get_next()
        two = hb.replicate_model_fn(
            model_fn, ["/device:CPU:0", "/device:CPU:1"], batches="fetch"
        )
        two(features, labels, "train")
        config = hb.loops.session_config(["/device:CPU:0", "/device:CPU:1"])
        with v1.Session(config=config) as session:
            one, other = session.run(got)
    assert sorted([*one, *other]) == [0, 1, 2, 3]


# A row, what is in its file, and what is said of it.
BROKEN = [
    ("none.txt,2", "1 2", "No such file or directory"),
    ("1.txt", "1 2", "Expect 2 fields but have 1"),
    ("2.txt,9", "1 2", "the label is out of range 0 to 3"),
    ("3.txt,2", "1 two", "could not correctly convert string: two"),
]


def test_rows_that_cannot_be_read(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = listed(tmp_path, [2, 2])
    lines = ["file,label", *path.read_text().splitlines()]
    for place, (row, content, _) in enumerate(BROKEN):
        (tmp_path / f"{place}.txt").write_text(content)
        lines.insert(2, row)
    path.write_text("\n".join(lines))
    rows = hb.data.Rows(str(path), header_lines=1)
    options: Any = {"batch_size": 1, "locations": [0], "num_classes": 4}
    stops = hb.data.Pipeline(rows, Numbers(), **options)
    with pytest.raises(tf.errors.OpError):
        list(stops.dataset(training=False))
    skips = hb.data.Pipeline(rows, Numbers(), bad_rows="skip", **options)
    assert skips.skipped[0] == stops.first_bad_row()
    labels = [int(label[0]) for _, label in skips.dataset(training=False)]
    assert labels == [0, 1]
    said = capfd.readouterr().err
    reasons = [reason for _, _, reason in BROKEN[::-1]]
    for number, (bad, reason) in enumerate(zip(skips.skipped, reasons, strict=True), 3):
        assert (bad.file, bad.number) == (str(path), number)
        assert reason in bad.reason
        assert f"hookbridge: skipped {path}, line {number}: " in said


def test_tfrecord_files(tmp_path: Path) -> None:
    path = str(tmp_path / "rows.tfrecord")
    with tf.io.TFRecordWriter(path) as writer:
        for number in range(4):
            feature = tf.train.Feature(int64_list=tf.train.Int64List(value=[number]))
            example = tf.train.Example(
                features=tf.train.Features(feature={"n": feature})
            )
            writer.write(b"no example" if number == 2 else example.SerializeToString())

    def parse(record: Any) -> Any:
        spec = {"n": tf.io.FixedLenFeature([], tf.int64)}
        return tf.io.parse_single_example(record, spec)["n"]

    made = hb.data.Pipeline(hb.data.Rows(path), parse, batch_size=3, bad_rows="skip")
    assert [(row.file, row.number) for row in made.skipped] == [(path, 3)]
    (batch,) = made.dataset(training=False)
    np.testing.assert_array_equal(batch, [0, 1, 3])


def test_files_of_any_file_system_and_plain_csv(tmp_path: Path) -> None:
    for name, text in (("ram://a.csv", "1.5,2\n2.5,3\n"), ("ram://b.csv", "3.5,4\n")):
        with tf.io.gfile.GFile(name, "w") as file:
            file.write(text)
    rows = hb.data.Rows(["ram://a.csv", "ram://b.csv"])
    assert rows.count() == 3
    made = hb.data.Pipeline(
        rows, lambda x, label: (x, label), batch_size=3, columns=[0.0, 0]
    )
    ((features, labels),) = made.dataset(training=False)
    np.testing.assert_array_equal(features, [1.5, 2.5, 3.5])
    np.testing.assert_array_equal(labels, [2, 3, 4])
