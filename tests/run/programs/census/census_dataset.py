"""Census-like rows: writes them as CSV, and builds columns and inputs."""
from __future__ import absolute_import
from __future__ import division
from __future__ import print_function

import os

from absl import app as absl_app
from absl import flags
import numpy as np
import tensorflow as tf

_CSV_COLUMNS = ['age', 'workclass', 'education', 'education_num',
                'occupation', 'hours_per_week', 'income_bracket']
_CSV_COLUMN_DEFAULTS = [[0], [''], [''], [0], [''], [0], ['']]
_WORK = ['Private', 'Self-emp-inc', 'Local-gov', '?']
_EDUCATION = ['Bachelors', 'HS-grad', '11th', 'Masters', 'Doctorate']
_JOBS = ['Tech-support', 'Sales', 'Exec-managerial', 'Craft-repair']
_NUM_EXAMPLES = {'train': 240, 'validation': 80}


def define_data_download_flags():
  flags.DEFINE_string(
      name='data_dir', default='/tmp/census_data/',
      help='Directory to write the census data to')


def _write(path, count, seed):
  random = np.random.RandomState(seed)
  with tf.compat.v1.gfile.Open(path, 'w') as out:
    for _ in range(count):
      age = random.randint(17, 80)
      years = random.randint(3, 16)
      hours = random.randint(10, 60)
      rich = age / 40. + years / 8. + hours / 40. + 0.5 * random.randn() > 3.2
      row = [age, _WORK[random.randint(4)], _EDUCATION[random.randint(5)],
             years, _JOBS[random.randint(4)], hours,
             '>50K' if rich else '<=50K']
      out.write(', '.join(str(value) for value in row) + '\n')


def download(data_dir):
  """Writes the data if it is not there yet."""
  tf.io.gfile.makedirs(data_dir)
  paths = []
  for seed, name in enumerate(['adult.data', 'adult.test']):
    path = os.path.join(data_dir, name)
    if not tf.io.gfile.exists(path):
      _write(path, list(_NUM_EXAMPLES.values())[seed], seed + 5)
    paths.append(path)
  return paths


def build_model_columns():
  """Builds a set of wide and deep feature columns."""
  age = tf.feature_column.numeric_column('age')
  education_num = tf.feature_column.numeric_column('education_num')
  hours_per_week = tf.feature_column.numeric_column('hours_per_week')

  education = tf.feature_column.categorical_column_with_vocabulary_list(
      'education', _EDUCATION)
  workclass = tf.feature_column.categorical_column_with_vocabulary_list(
      'workclass', _WORK, num_oov_buckets=1)
  occupation = tf.feature_column.categorical_column_with_hash_bucket(
      'occupation', hash_bucket_size=20)

  age_buckets = tf.feature_column.bucketized_column(
      age, boundaries=[18, 25, 30, 35, 40, 45, 50, 55, 60, 65])

  base_columns = [education, workclass, occupation, age_buckets]
  crossed_columns = [
      tf.feature_column.crossed_column(
          ['education', 'occupation'], hash_bucket_size=50),
      tf.feature_column.crossed_column(
          [age_buckets, 'education', 'occupation'], hash_bucket_size=50),
  ]
  wide_columns = base_columns + crossed_columns
  deep_columns = [
      tf.feature_column.numeric_column(
          'age', normalizer_fn=lambda x: (tf.cast(x, tf.float32) - 40.) / 20.),
      tf.feature_column.numeric_column(
          'hours_per_week',
          normalizer_fn=lambda x: (tf.cast(x, tf.float32) - 40.) / 20.),
      tf.feature_column.indicator_column(workclass),
      tf.feature_column.indicator_column(education),
      tf.feature_column.embedding_column(
          occupation, dimension=4,
          initializer=tf.compat.v1.truncated_normal_initializer(
              stddev=0.3, seed=3)),
  ]
  del education_num, hours_per_week
  return wide_columns, deep_columns


def input_fn(data_file, num_epochs, shuffle, batch_size):
  """Generate an input function for the Estimator."""
  assert tf.io.gfile.exists(data_file), (
      '%s not found. Please make sure you have run census_dataset.py' %
      data_file)

  def parse_csv(value):
    tf.compat.v1.logging.info('Parsing {}'.format(data_file))
    columns = tf.io.decode_csv(
        records=tf.strings.regex_replace(value, ', ', ','),
        record_defaults=_CSV_COLUMN_DEFAULTS)
    features = dict(zip(_CSV_COLUMNS, columns))
    labels = features.pop('income_bracket')
    classes = tf.equal(labels, '>50K')
    return features, classes

  dataset = tf.data.TextLineDataset(data_file)
  if shuffle:
    dataset = dataset.shuffle(buffer_size=_NUM_EXAMPLES['train'], seed=9)
  dataset = dataset.map(parse_csv, num_parallel_calls=2)
  dataset = dataset.repeat(num_epochs)
  return dataset.batch(batch_size)


def main(_):
  download(flags.FLAGS.data_dir)


if __name__ == '__main__':
  tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.INFO)
  define_data_download_flags()
  absl_app.run(main)
