"""Digits in the files of MNIST, made of noise and blobs."""
import gzip
import os
import struct

import numpy as np


def _images(count, seed):
  random = np.random.RandomState(seed)
  labels = random.randint(0, 10, count).astype(np.uint8)
  images = random.randint(0, 60, [count, 28, 28]).astype(np.uint8)
  for image, label in zip(images, labels):
    row, column = divmod(int(label), 5)
    image[5 + 10 * row:13 + 10 * row, 1 + 5 * column:6 + 5 * column] += 180
  return images, labels


def write(folder):
  """Writes the four files that `read_data_sets` looks for."""
  if not os.path.isdir(folder):
    os.makedirs(folder)
  for name, count, seed in (('train', 5200, 3), ('t10k', 100, 4)):
    images, labels = _images(count, seed)
    path = os.path.join(folder, name + '-images-idx3-ubyte.gz')
    with gzip.open(path, 'wb') as out:
      out.write(struct.pack('>IIII', 2051, count, 28, 28))
      out.write(images.tobytes())
    path = os.path.join(folder, name + '-labels-idx1-ubyte.gz')
    with gzip.open(path, 'wb') as out:
      out.write(struct.pack('>II', 2049, count))
      out.write(labels.tobytes())
