"""An Estimator whose hooks fetch by name, count, write a file and stop."""
import numpy as np
import tensorflow as tf

slim_decay = 0.9


class Recorder(tf.train.SessionRunHook):
  """Writes a line for each step."""

  def __init__(self, path, every=1):
    self._path = path
    self._timer = tf.train.SecondOrStepTimer(every_steps=every)

  def begin(self):
    self._file = open(self._path, 'w')
    self._step = tf.train.get_global_step()

  def before_run(self, run_context):
    return tf.train.SessionRunArgs({'loss': 'mean/loss:0', 'step': self._step})

  def after_run(self, run_context, run_values):
    step = run_values.results['step']
    if self._timer.should_trigger_for_step(step):
      self._timer.update_last_triggered_step(step)
      self._file.write('{:.5f}\n'.format(run_values.results['loss']))
      print('loss', run_values.results['loss'])

  def end(self, session):
    self._file.close()


class StopBelow(tf.train.SessionRunHook):
  """Stops once the loss is small."""

  def __init__(self, limit):
    self._limit = limit

  def before_run(self, run_context):
    return tf.train.SessionRunArgs('mean/loss:0')

  def after_run(self, run_context, run_values):
    if run_values.results < self._limit:
      run_context.request_stop()


def model_fn(features, labels, mode, params):
  weights = tf.get_variable('weights', [2, 1], initializer=tf.ones_initializer())
  predictions = tf.matmul(features['x'], weights)
  if mode == tf.estimator.ModeKeys.PREDICT:
    return tf.estimator.EstimatorSpec(mode, predictions={'y': predictions})
  with tf.name_scope('mean'):
    loss = tf.identity(tf.losses.mean_squared_error(labels, predictions), 'loss')
  metrics = {'mae': tf.metrics.mean_absolute_error(labels, predictions)}
  train_op = tf.train.GradientDescentOptimizer(params['rate']).minimize(
      loss, global_step=tf.train.get_global_step())
  return tf.estimator.EstimatorSpec(
      mode, loss=loss, train_op=train_op, eval_metric_ops=metrics,
      training_hooks=[Recorder('losses.txt')])


def main(_):
  x = np.linspace(-1, 1, 40).reshape(20, 2).astype('float32')
  y = x.dot(np.array([[3.], [-1.]], 'float32'))
  estimator = tf.estimator.Estimator(
      model_fn, 'out', params={'rate': 0.5},
      config=tf.estimator.RunConfig(save_checkpoints_steps=10, save_summary_steps=5))
  input_fn = tf.estimator.inputs.numpy_input_fn(
      {'x': x}, y, batch_size=10, shuffle=False, num_epochs=None)
  estimator.train(input_fn, hooks=[StopBelow(0.5)], max_steps=30)
  once = tf.estimator.inputs.numpy_input_fn(
      {'x': x}, y, batch_size=10, shuffle=False, num_epochs=1)
  result = estimator.evaluate(once)
  print('step', result['global_step'], 'eval_loss', result['loss'], 'mae',
        result['mae'])
  print('predicted', next(estimator.predict(once))['y'][0])


if __name__ == '__main__':
  tf.app.run()
