"""Iris-like measurements: three kinds of flowers, four numbers each."""
import numpy as np
import tensorflow as tf

CSV_COLUMN_NAMES = ['SepalLength', 'SepalWidth',
                    'PetalLength', 'PetalWidth', 'Species']
SPECIES = ['Setosa', 'Versicolor', 'Virginica']
_CENTERS = np.array([[5.0, 3.4, 1.5, 0.2],
                     [5.9, 2.8, 4.3, 1.3],
                     [6.6, 3.0, 5.6, 2.0]])


def _make(count, seed):
    random = np.random.RandomState(seed)
    labels = random.randint(0, 3, count)
    values = _CENTERS[labels] + 0.3 * random.randn(count, 4)
    features = {name: values[:, i].astype(np.float32)
                for i, name in enumerate(CSV_COLUMN_NAMES[:4])}
    return features, labels.astype(np.int32)


def load_data():
    """Returns the iris dataset as (train_x, train_y), (test_x, test_y)."""
    return _make(120, 1), _make(30, 2)


def train_input_fn(features, labels, batch_size):
    """An input function for training"""
    dataset = tf.data.Dataset.from_tensor_slices((dict(features), labels))
    dataset = dataset.shuffle(1000, seed=11, reshuffle_each_iteration=False)
    dataset = dataset.repeat().batch(batch_size)
    return dataset


def eval_input_fn(features, labels, batch_size):
    """An input function for evaluation or prediction"""
    inputs = dict(features) if labels is None else (dict(features), labels)
    return tf.data.Dataset.from_tensor_slices(inputs).batch(batch_size)
