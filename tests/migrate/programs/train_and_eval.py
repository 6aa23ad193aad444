"""`train_and_evaluate` with specifications, an exporter and hooks in both."""
import numpy as np
import tensorflow as tf


class Counter(tf.estimator.SessionRunHook):
  """Counts the runs of a loop."""

  def __init__(self, name):
    self.name, self.runs = name, 0

  def after_run(self, run_context, run_values):
    self.runs += 1

  def end(self, session):
    print(self.name, 'runs', self.runs)


def input_fn():
  x = np.arange(24, dtype='float32').reshape(12, 2) / 24
  return tf.data.Dataset.from_tensor_slices(
      ({'x': x}, x.sum(axis=1, keepdims=True))).repeat().batch(4)


def model_fn(features, labels, mode):
  x = features['x']
  weights = tf.compat.v1.get_variable(
      'weights', [2, 1], initializer=tf.compat.v1.zeros_initializer())
  predictions = {'y': tf.matmul(x, weights)}
  if mode == tf.estimator.ModeKeys.PREDICT:
    return tf.estimator.EstimatorSpec(
        mode, predictions=predictions,
        export_outputs={
            'serving_default': tf.estimator.export.PredictOutput(predictions)})
  loss = tf.compat.v1.losses.mean_squared_error(labels, predictions['y'])
  train_op = tf.compat.v1.train.AdagradOptimizer(0.5).minimize(
      loss, global_step=tf.compat.v1.train.get_global_step())
  return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def serving():
  x = tf.compat.v1.placeholder(tf.float32, [None, 2], name='x')
  return tf.estimator.export.ServingInputReceiver({'x': x}, x)


def main():
  config = tf.estimator.RunConfig(
      model_dir='out', save_checkpoints_steps=5, tf_random_seed=1)
  estimator = tf.estimator.Estimator(model_fn, config=config)
  train_spec = tf.estimator.TrainSpec(
      input_fn, max_steps=10, hooks=[Counter('train')])
  eval_spec = tf.estimator.EvalSpec(
      input_fn, steps=3, throttle_secs=0, start_delay_secs=0,
      hooks=[Counter('eval')],
      exporters=tf.estimator.FinalExporter('final', serving))
  metrics, _ = tf.estimator.train_and_evaluate(estimator, train_spec, eval_spec)
  print('step', metrics['global_step'], 'loss', metrics['loss'])


if __name__ == '__main__':
  main()
