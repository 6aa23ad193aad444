"""Census-like rows: writes them as CSV, and builds columns and inputs."""
import os

import numpy as np
import tensorflow as tf

_CSV_COLUMNS = ['age', 'workclass', 'education', 'education_num',
                'occupation', 'hours_per_week', 'income_bracket']
_CSV_COLUMN_DEFAULTS = [[0], [''], [''], [0], [''], [0], ['']]
_WORK = ['Private', 'Self-emp-inc', 'Local-gov', '?']
_EDUCATION = ['Bachelors', 'HS-grad', '11th', 'Masters', 'Doctorate']
_JOBS = ['Tech-support', 'Sales', 'Exec-managerial', 'Craft-repair']
_NUM_EXAMPLES = {'train': 240, 'validation': 80}


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
  """Writes the data."""
  tf.io.gfile.makedirs(data_dir)
  paths = []
  for seed, name in enumerate(['adult.data', 'adult.test']):
    path = os.path.join(data_dir, name)
    _write(path, list(_NUM_EXAMPLES.values())[seed], seed + 5)
    paths.append(path)
  return paths


def build_model_columns():
  """Builds a set of wide and deep feature columns."""
  age = tf.feature_column.numeric_column('age')
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
  return wide_columns, deep_columns


def input_fn(data_file, num_epochs, shuffle, batch_size):
  """Generate an input function for the Estimator."""
  def parse_csv(value):
    tf.compat.v1.logging.info('Parsing {}'.format(data_file))
    columns = tf.io.decode_csv(
        records=tf.strings.regex_replace(value, ', ', ','),
        record_defaults=_CSV_COLUMN_DEFAULTS)
    features = dict(zip(_CSV_COLUMNS, columns))
    return features, tf.equal(features.pop('income_bracket'), '>50K')

  dataset = tf.data.TextLineDataset(data_file)
  if shuffle:
    dataset = dataset.shuffle(buffer_size=_NUM_EXAMPLES['train'], seed=9)
  dataset = dataset.map(parse_csv, num_parallel_calls=2)
  dataset = dataset.repeat(num_epochs)
  return dataset.batch(batch_size)
