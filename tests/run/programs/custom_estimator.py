"""A custom Estimator after tf_upgrade_v2, with hooks, export and evaluation."""
import os

import numpy as np
import tensorflow as tf

FLAGS = tf.compat.v1.app.flags.FLAGS
tf.compat.v1.app.flags.DEFINE_string('model_dir', '/tmp/custom', 'Model dir.')
tf.compat.v1.app.flags.DEFINE_integer('max_steps', 12, 'Last step.')
tf.compat.v1.app.flags.DEFINE_list('hidden_units', ['8', '6'], 'Layers.')


class SecondsHook(tf.estimator.SessionRunHook):
  """A hook of its own, derived from the class that 2.15's upgrade names."""

  def begin(self):
    self._runs = 0

  def before_run(self, run_context):
    return tf.estimator.SessionRunArgs(
        tf.compat.v1.train.get_or_create_global_step())

  def after_run(self, run_context, run_values):
    self._runs += 1
    if run_values.results > 10000:
      run_context.request_stop()

  def end(self, session):
    tf.compat.v1.logging.info('%d runs', self._runs)


def my_model(features, labels, mode, params):
  """DNN with batch normalisation and three heads' worth of metrics."""
  net = tf.compat.v1.feature_column.input_layer(
      features, params['feature_columns'])
  for seed, units in enumerate(params['hidden_units']):
    net = tf.compat.v1.layers.dense(
        net, units=units, activation=tf.nn.relu,
        kernel_initializer=tf.compat.v1.variance_scaling_initializer(seed=seed),
        kernel_regularizer=tf.keras.regularizers.l2(0.5 * (1e-3)))
    net = tf.compat.v1.layers.batch_normalization(
        net, momentum=0.9, training=mode == tf.estimator.ModeKeys.TRAIN)
  logits = tf.compat.v1.layers.dense(
      net, params['n_classes'], activation=None,
      kernel_initializer=tf.compat.v1.glorot_uniform_initializer(seed=7))

  predicted_classes = tf.argmax(input=logits, axis=1)
  if mode == tf.estimator.ModeKeys.PREDICT:
    predictions = {
        'class_ids': predicted_classes[:, tf.newaxis],
        'probabilities': tf.nn.softmax(logits),
    }
    return tf.estimator.EstimatorSpec(
        mode, predictions=predictions, export_outputs={
            tf.compat.v1.saved_model.signature_constants
            .DEFAULT_SERVING_SIGNATURE_DEF_KEY:
                tf.estimator.export.PredictOutput(predictions)})

  loss = tf.compat.v1.losses.sparse_softmax_cross_entropy(
      labels=labels, logits=logits)
  loss += tf.add_n(tf.compat.v1.losses.get_regularization_losses())
  accuracy = tf.compat.v1.metrics.accuracy(
      labels=labels, predictions=predicted_classes, name='acc_op')
  metrics = {'accuracy': accuracy,
             'top2': tf.compat.v1.metrics.mean(
                 tf.nn.in_top_k(predictions=logits, targets=labels, k=2))}
  tf.compat.v1.summary.scalar('accuracy', accuracy[1])
  if mode == tf.estimator.ModeKeys.EVAL:
    return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)

  assert mode == tf.estimator.ModeKeys.TRAIN
  step = tf.compat.v1.train.get_global_step()
  learning_rate = tf.compat.v1.train.polynomial_decay(0.1, step, 20, 0.01)
  optimizer = tf.compat.v1.train.AdagradOptimizer(learning_rate=learning_rate)
  update_ops = tf.compat.v1.get_collection(
      tf.compat.v1.GraphKeys.UPDATE_OPS)
  with tf.control_dependencies(update_ops):
    train_op = optimizer.minimize(loss, global_step=step)
  summary_hook = tf.estimator.SummarySaverHook(
      save_steps=5, output_dir=os.path.join(FLAGS.model_dir, 'more'),
      summary_op=tf.compat.v1.summary.merge_all())
  logging_hook = tf.estimator.LoggingTensorHook(
      {'train_loss': loss}, every_n_iter=1)
  return tf.estimator.EstimatorSpec(
      mode, loss=loss, train_op=train_op,
      training_hooks=[summary_hook, logging_hook])


def make_input_fn(count, seed, epochs, batch_size=20):
  random = np.random.RandomState(seed)
  labels = random.randint(0, 3, count)
  x = random.randn(count, 2).astype(np.float32) + labels[:, None]
  return tf.compat.v1.estimator.inputs.numpy_input_fn(
      {'first': x[:, 0], 'second': x[:, 1]}, labels.astype(np.int32),
      batch_size=batch_size, num_epochs=epochs, shuffle=False)


def main(_):
  my_feature_columns = [tf.feature_column.numeric_column(key=key)
                        for key in ('first', 'second')]
  classifier = tf.estimator.Estimator(
      model_fn=my_model,
      model_dir=FLAGS.model_dir,
      params={
          'feature_columns': my_feature_columns,
          'hidden_units': [int(units) for units in FLAGS.hidden_units],
          'n_classes': 3,
      },
      config=tf.estimator.RunConfig(save_checkpoints_steps=6,
                                    keep_checkpoint_max=2))
  early_stopping = tf.estimator.experimental.stop_if_no_decrease_hook(
      classifier, 'loss', max_steps_without_decrease=1000, min_steps=100)
  train_spec = tf.estimator.TrainSpec(
      make_input_fn(100, 1, None), max_steps=FLAGS.max_steps,
      hooks=[SecondsHook(), early_stopping])
  best = tf.estimator.BestExporter(
      serving_input_receiver_fn=(
          tf.estimator.export.build_parsing_serving_input_receiver_fn(
              tf.feature_column.make_parse_example_spec(my_feature_columns))),
      exports_to_keep=1)
  eval_spec = tf.estimator.EvalSpec(
      make_input_fn(60, 2, 1), steps=None, exporters=[best],
      start_delay_secs=0, throttle_secs=0)
  tf.estimator.train_and_evaluate(classifier, train_spec, eval_spec)
  predictions = list(classifier.predict(make_input_fn(5, 3, 1)))
  print([int(p['class_ids'][0]) for p in predictions])


if __name__ == '__main__':
  tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.INFO)
  tf.compat.v1.app.run(main)
