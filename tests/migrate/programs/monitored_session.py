"""A MonitoredTrainingSession with hooks of its own, after `tf_upgrade_v2` of 2.15."""
import numpy as np
import tensorflow as tf


class Losses(tf.estimator.SessionRunHook):
  """Prints the loss of each step."""

  def __init__(self, loss):
    self._loss = loss

  def before_run(self, run_context):
    return tf.estimator.SessionRunArgs(self._loss)

  def after_run(self, run_context, run_values):
    print('loss', run_values.results)


def main(_):
  random = np.random.RandomState(0)
  x = random.normal(size=[32, 3]).astype('float32')
  y = x.dot(np.array([[1.], [-2.], [.5]], 'float32'))
  with tf.Graph().as_default():
    with tf.device(tf.compat.v1.train.replica_device_setter(0)):
      weights = tf.compat.v1.get_variable(
          'weights', [3, 1], initializer=tf.compat.v1.zeros_initializer())
      loss = tf.reduce_mean(
          input_tensor=tf.math.squared_difference(tf.matmul(x, weights), y))
      step = tf.compat.v1.train.get_or_create_global_step()
      train_op = tf.compat.v1.train.AdamOptimizer(0.1).minimize(
          loss, global_step=step)
    tf.compat.v1.summary.scalar('loss', loss)
    hooks = [Losses(loss), tf.estimator.StopAtStepHook(last_step=8),
             tf.estimator.NanTensorHook(loss)]
    with tf.compat.v1.train.MonitoredTrainingSession(
        checkpoint_dir='out', hooks=hooks, save_checkpoint_steps=4,
        save_summaries_steps=4) as session:
      while not session.should_stop():
        session.run(train_op)


if __name__ == '__main__':
  tf.compat.v1.app.run()
