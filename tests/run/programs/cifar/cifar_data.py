"""Small pictures in TFRecord files, and the input pipeline over them."""
import os

import numpy as np
import tensorflow as tf

HEIGHT = 8
WIDTH = 8
DEPTH = 3


def _int64_feature(value):
  return tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))


def _bytes_feature(value):
  return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))


def generate(data_dir):
  """Writes train, validation and eval records."""
  if not tf.gfile.Exists(data_dir):
    tf.gfile.MakeDirs(data_dir)
  for seed, (subset, count) in enumerate([('train', 96), ('eval', 32)]):
    random = np.random.RandomState(seed)
    path = os.path.join(data_dir, subset + '.tfrecords')
    with tf.python_io.TFRecordWriter(path) as record_writer:
      for i in range(count):
        label = i % 10
        picture = random.randint(0, 100, [DEPTH, HEIGHT, WIDTH])
        picture[label % 3, label % HEIGHT] += 120
        example = tf.train.Example(features=tf.train.Features(feature={
            'image': _bytes_feature(picture.astype(np.uint8).tobytes()),
            'label': _int64_feature(label)
        }))
        record_writer.write(example.SerializeToString())


class Cifar10DataSet(object):
  """Cifar10 data set."""

  def __init__(self, data_dir, subset='train'):
    self.data_dir = data_dir
    self.subset = subset

  def parser(self, serialized_example):
    """Parses a single tf.Example into image and label tensors."""
    features = tf.parse_single_example(
        serialized_example,
        features={
            'image': tf.FixedLenFeature([], tf.string),
            'label': tf.FixedLenFeature([], tf.int64),
        })
    image = tf.decode_raw(features['image'], tf.uint8)
    image.set_shape([DEPTH * HEIGHT * WIDTH])
    image = tf.cast(
        tf.transpose(tf.reshape(image, [DEPTH, HEIGHT, WIDTH]), [1, 2, 0]),
        tf.float32)
    label = tf.cast(features['label'], tf.int32)
    return image / 128. - 1., label

  def make_batch(self, batch_size):
    """Read the images and labels from 'filenames'."""
    path = os.path.join(self.data_dir, self.subset + '.tfrecords')
    dataset = tf.data.TFRecordDataset([path]).repeat()
    dataset = dataset.map(self.parser, num_parallel_calls=batch_size)
    dataset = dataset.batch(batch_size)
    return dataset.make_one_shot_iterator().get_next()
