"""Queues of pictures: file names, records, examples, batches."""
import os

import numpy as np
from six.moves import xrange  # pylint: disable=redefined-builtin
import tensorflow as tf

IMAGE_SIZE = 12
NUM_CLASSES = 4
RECORD_BYTES = 1 + IMAGE_SIZE * IMAGE_SIZE * 3


def maybe_generate(paths):
  """Writes records of fixed length: a label, then a picture."""
  for part, path in enumerate(paths):
    random = np.random.RandomState(part)
    with open(path, 'wb') as out:
      for _ in xrange(40):
        label = random.randint(NUM_CLASSES)
        picture = random.randint(0, 128, [3, IMAGE_SIZE, IMAGE_SIZE])
        picture[:, 3 * label:3 * label + 3, :] += 100
        out.write(bytearray([label]))
        out.write(picture.astype(np.uint8).tobytes())


def inputs(data_dir, batch_size):
  """Images and labels for training, in the order of the files."""
  if not os.path.exists(data_dir):
    os.makedirs(data_dir)
  paths = [os.path.join(data_dir, 'data_batch_%d.bin' % i) for i in xrange(2)]
  maybe_generate(paths)
  with tf.name_scope('input'):
    filename_queue = tf.train.string_input_producer(paths, shuffle=False)
    reader = tf.FixedLengthRecordReader(record_bytes=RECORD_BYTES)
    _, value = reader.read(filename_queue)
    record_bytes = tf.decode_raw(value, tf.uint8)
    label = tf.cast(tf.strided_slice(record_bytes, [0], [1]), tf.int32)
    label.set_shape([1])
    depth_major = tf.reshape(
        tf.strided_slice(record_bytes, [1], [RECORD_BYTES]),
        [3, IMAGE_SIZE, IMAGE_SIZE])
    image = tf.cast(tf.transpose(depth_major, [1, 2, 0]), tf.float32)
    images, labels = tf.train.batch(
        [tf.image.per_image_standardization(image), label],
        batch_size=batch_size, num_threads=1, capacity=68)
    tf.summary.image('images', images)
    return images, tf.reshape(labels, [batch_size])
