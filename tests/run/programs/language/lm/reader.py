"""Batches of words, produced by a queue over an array."""
from __future__ import absolute_import
from __future__ import division
from __future__ import print_function

import collections

import numpy as np
import tensorflow.compat.v1 as tf


def raw_data(vocabulary=20, length=600):
  """A text whose next word depends on the last one."""
  random = np.random.RandomState(2)
  words = [0]
  for _ in range(length):
    step = 1 if random.rand() < 0.8 else random.randint(vocabulary)
    words.append((words[-1] + step) % vocabulary)
  counter = collections.Counter(words)
  del counter
  return words


def producer(raw, batch_size, num_steps, name=None):
  """Iterate on the raw data."""
  with tf.name_scope(name, 'Producer', [raw, batch_size, num_steps]):
    raw = tf.convert_to_tensor(raw, name='raw_data', dtype=tf.int32)
    data_len = tf.size(raw)
    batch_len = data_len // batch_size
    data = tf.reshape(raw[0:batch_size * batch_len], [batch_size, batch_len])
    epoch_size = (batch_len - 1) // num_steps
    assertion = tf.assert_positive(
        epoch_size, message='epoch_size == 0, decrease batch_size or num_steps')
    with tf.control_dependencies([assertion]):
      epoch_size = tf.identity(epoch_size, name='epoch_size')
    i = tf.train.range_input_producer(epoch_size, shuffle=False).dequeue()
    x = tf.strided_slice(data, [0, i * num_steps],
                         [batch_size, (i + 1) * num_steps])
    x.set_shape([batch_size, num_steps])
    y = tf.strided_slice(data, [0, i * num_steps + 1],
                         [batch_size, (i + 1) * num_steps + 1])
    y.set_shape([batch_size, num_steps])
    return x, y
