"""Model and input functions of the census sample."""
import numpy as np
import six
import tensorflow as tf

CSV_COLUMNS = ['age', 'education', 'hours_per_week', 'gender', 'income_bracket']
CSV_COLUMN_DEFAULTS = [[0], [''], [0], [''], ['']]
LABEL_COLUMN = 'income_bracket'
LABELS = [' <=50K', ' >50K']

INPUT_COLUMNS = [
    tf.feature_column.categorical_column_with_vocabulary_list(
        'gender', [' Female', ' Male']),
    tf.feature_column.categorical_column_with_vocabulary_list(
        'education', [' Bachelors', ' HS-grad', ' 11th', ' Masters']),
    tf.feature_column.numeric_column('age'),
    tf.feature_column.numeric_column('hours_per_week'),
]


def write_csv(path, rows, seed):
  random = np.random.RandomState(seed)
  with open(path, 'w') as out:
    for _ in six.moves.range(rows):
      age, hours = random.randint(18, 80), random.randint(5, 60)
      label = LABELS[int(age + hours + random.randint(20) > 90)]
      out.write('{},{},{},{},{}\n'.format(
          age, [' Bachelors', ' HS-grad', ' 11th', ' Masters'][
              random.randint(4)],
          hours, [' Female', ' Male'][random.randint(2)], label))


def build_estimator(config, hidden_units):
  """A wide and deep model."""
  (gender, education, age, hours_per_week) = INPUT_COLUMNS
  age_buckets = tf.feature_column.bucketized_column(
      age, boundaries=[18, 25, 30, 35, 40, 45, 50, 55, 60, 65])
  wide_columns = [
      tf.feature_column.crossed_column(
          ['education', 'gender'], hash_bucket_size=int(1e2)),
      gender, education, age_buckets,
  ]
  deep_columns = [
      tf.feature_column.indicator_column(gender),
      tf.feature_column.embedding_column(
          education, dimension=4,
          initializer=tf.truncated_normal_initializer(stddev=.5, seed=4)),
      tf.feature_column.numeric_column(
          'hours_per_week', normalizer_fn=lambda x: tf.to_float(x) / 60.),
  ]

  def model_fn(features, labels, mode, params, config):
    """A canned head on a hand-made network, as the sample's second version."""
    wide = tf.feature_column.linear_model(
        features, wide_columns, units=1)
    net = tf.feature_column.input_layer(features, deep_columns)
    for seed, units in enumerate(params.hidden_units):
      net = tf.contrib.layers.fully_connected(
          net, units, activation_fn=tf.nn.relu,
          weights_initializer=tf.contrib.layers.xavier_initializer(seed=seed))
    logits = wide + tf.contrib.layers.fully_connected(
        net, 1, activation_fn=None,
        weights_initializer=tf.contrib.layers.xavier_initializer(seed=9),
        weights_regularizer=tf.contrib.layers.l2_regularizer(1e-3))
    if mode == tf.estimator.ModeKeys.PREDICT:
      out = {'probability': tf.sigmoid(logits)}
      exports = {'serving_default': tf.estimator.export.PredictOutput(out)}
      return tf.estimator.EstimatorSpec(mode, out, export_outputs=exports)
    loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(
        labels=labels, logits=logits))
    loss += tf.losses.get_regularization_loss()
    train_op = None
    if mode == tf.estimator.ModeKeys.TRAIN:
      train_op = tf.contrib.layers.optimize_loss(
          loss, tf.contrib.framework.get_global_step(),
          learning_rate=params.learning_rate, optimizer='Adam',
          clip_gradients=5.0, summaries=['loss'])
    return tf.estimator.EstimatorSpec(
        mode, loss=loss, train_op=train_op,
        eval_metric_ops={
            'accuracy': tf.metrics.accuracy(labels, tf.round(tf.sigmoid(logits))),
        })

  return tf.estimator.Estimator(
      model_fn, config=config,
      params=tf.contrib.training.HParams(
          hidden_units=hidden_units, learning_rate=0.05))


def generate_input_fn(filenames, num_epochs=None, batch_size=20):
  """Queues of lines, the way of before tf.data."""

  def _input_fn():
    filename_queue = tf.train.string_input_producer(
        filenames, num_epochs=num_epochs, shuffle=False)
    reader = tf.TextLineReader()
    _, rows = reader.read_up_to(filename_queue, num_records=batch_size)
    columns = tf.decode_csv(
        tf.expand_dims(rows, -1), record_defaults=CSV_COLUMN_DEFAULTS)
    features = tf.train.batch(
        dict(zip(CSV_COLUMNS, columns)), batch_size, num_threads=1, capacity=batch_size * 10,
        enqueue_many=True, allow_smaller_final_batch=True)
    label_tensor = tf.to_float(
        tf.equal(features.pop(LABEL_COLUMN), LABELS[1]))
    return features, label_tensor

  return _input_fn


def serving_input_fn():
  """Placeholders for people of whom the label is not known."""
  features = {
      name: tf.placeholder(tf.string if default == [''] else tf.int32, [None])
      for name, default in zip(CSV_COLUMNS[:4], CSV_COLUMN_DEFAULTS)}
  return tf.estimator.export.ServingInputReceiver(features, features)
