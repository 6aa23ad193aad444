"""Hooks of pure Python, which become callbacks with `--native`."""
import numpy as np
import tensorflow as tf


class StopAfter(tf.estimator.SessionRunHook):
  """Stops after a number of steps."""

  def __init__(self, steps):
    self.steps = steps

  def begin(self):
    self.seen = 0

  def after_run(self, run_context, run_values):
    self.seen += 1
    print('seen', self.seen)
    if self.seen == self.steps:
      run_context.request_stop()

  def end(self, session):
    with open('seen.txt', 'w') as file:
      file.write(str(self.seen))


def input_fn():
  x = np.ones([8, 1], 'float32')
  return tf.data.Dataset.from_tensor_slices((x, 2 * x)).repeat().batch(4)


def model_fn(features, labels, mode):
  w = tf.compat.v1.get_variable(
      'w', [], initializer=tf.compat.v1.zeros_initializer())
  loss = tf.reduce_mean(input_tensor=tf.square(features * w - labels))
  train_op = tf.compat.v1.train.GradientDescentOptimizer(0.1).minimize(
      loss, tf.compat.v1.train.get_global_step())
  return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def main():
  estimator = tf.estimator.Estimator(model_fn, 'out')
  hooks = [StopAfter(5)]
  estimator.train(input_fn, hooks=hooks, max_steps=20)
  print('step', estimator.get_variable_value('global_step'),
        'w', estimator.get_variable_value('w'))


if __name__ == '__main__':
  main()
