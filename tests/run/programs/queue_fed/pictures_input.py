"""Queues of pictures: file names, records, examples, batches."""
import os

import numpy as np
from six.moves import xrange  # pylint: disable=redefined-builtin
import tensorflow as tf

IMAGE_SIZE = 12
NUM_CLASSES = 4
LABEL_BYTES = 1
RECORD_BYTES = LABEL_BYTES + IMAGE_SIZE * IMAGE_SIZE * 3


def maybe_generate(data_dir):
  """Writes records of fixed length: a label, then a picture."""
  if not os.path.exists(data_dir):
    os.makedirs(data_dir)
  for part in xrange(1, 3):
    path = os.path.join(data_dir, 'data_batch_%d.bin' % part)
    random = np.random.RandomState(part)
    with open(path, 'wb') as out:
      for _ in xrange(40):
        label = random.randint(NUM_CLASSES)
        picture = random.randint(0, 128, [3, IMAGE_SIZE, IMAGE_SIZE])
        picture[:, 3 * label:3 * label + 3, :] += 100
        out.write(bytearray([label]))
        out.write(picture.astype(np.uint8).tobytes())


class Record(object):
  pass


def read_record(filename_queue):
  """Reads and parses examples from the data files."""
  result = Record()
  reader = tf.FixedLengthRecordReader(record_bytes=RECORD_BYTES)
  result.key, value = reader.read(filename_queue)
  record_bytes = tf.decode_raw(value, tf.uint8)
  result.label = tf.cast(
      tf.strided_slice(record_bytes, [0], [LABEL_BYTES]), tf.int32)
  depth_major = tf.reshape(
      tf.strided_slice(record_bytes, [LABEL_BYTES], [RECORD_BYTES]),
      [3, IMAGE_SIZE, IMAGE_SIZE])
  result.uint8image = tf.transpose(depth_major, [1, 2, 0])
  return result


def inputs(data_dir, batch_size):
  """Images and labels for training, in the order of the files."""
  filenames = [os.path.join(data_dir, 'data_batch_%d.bin' % i)
               for i in xrange(1, 3)]
  with tf.name_scope('input'):
    filename_queue = tf.train.string_input_producer(filenames, shuffle=False)
    read_input = read_record(filename_queue)
    reshaped_image = tf.cast(read_input.uint8image, tf.float32)
    float_image = tf.image.per_image_standardization(reshaped_image)
    float_image.set_shape([IMAGE_SIZE, IMAGE_SIZE, 3])
    read_input.label.set_shape([1])
    images, label_batch = tf.train.batch(
        [float_image, read_input.label],
        batch_size=batch_size,
        num_threads=1,
        capacity=20 + 3 * batch_size)
    tf.summary.image('images', images)
    return images, tf.reshape(label_batch, [batch_size])
