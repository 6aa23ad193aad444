"""The digits: the content of the file, its place, and the batches made from it."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from hookbridge.demo import data


def test_the_file_holds_the_published_test_set() -> None:
    images, labels = data.read_digits()
    assert images.shape == (1797, 64) and images.dtype == np.float32
    assert (images.min(), images.max()) == (0.0, 1.0)
    # The class sizes in the documentation of optdigits.tes.
    assert np.bincount(labels).tolist() == [
        178, 182, 177, 183, 181, 182, 181, 179, 174, 180,
    ]  # fmt: skip


def test_the_parts_are_disjoint_and_complete_and_follow_the_seed() -> None:
    digits = data.load_digits(seed=3)
    sizes = [len(part.labels) for part in digits]
    assert sizes == [data.TRAINING_IMAGES, data.VALIDATION_IMAGES, data.TEST_IMAGES]
    together = np.concatenate([part.images for part in digits])
    everything = data.read_digits().images
    assert sorted(map(bytes, together)) == sorted(map(bytes, everything))
    again, other = data.load_digits(seed=3), data.load_digits(seed=4)
    np.testing.assert_array_equal(digits.test.labels, again.test.labels)
    assert not np.array_equal(digits.test.labels, other.test.labels)


def test_graph_and_eager_mode_see_the_same_batches() -> None:
    import tensorflow as tf

    part = data.load_digits(seed=0).train

    def dataset() -> object:
        return data.training_dataset(part, batch_size=500, seed=5)

    # A test before may have left a seed, which a new graph does not have.
    tf.random.set_seed(3)
    eager = [labels.numpy() for _, labels in dataset().take(5)]  # type: ignore[attr-defined]
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        tf.compat.v1.set_random_seed(3)
        labels = tf.compat.v1.data.make_one_shot_iterator(dataset()).get_next()[1]
        for expected in eager:  # two batches an epoch: the order changes in between
            np.testing.assert_array_equal(session.run(labels), expected)
    assert not np.array_equal(eager[0], eager[2])


def test_the_packages_folder_is_a_link_to_the_example(repo_root: Path) -> None:
    link = repo_root / "hookbridge" / "demo" / "data"
    assert os.readlink(link) == os.path.join("..", "..", "examples", "data")
    readme = (link / "README.md").read_text("utf-8")
    for needed in ("Optical Recognition of Handwritten", "Alpaydin", "CC BY 4.0"):
        assert needed in readme
