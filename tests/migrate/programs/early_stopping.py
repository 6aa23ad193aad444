"""Early stopping hooks of `tf.estimator.experimental`."""
import numpy as np
import tensorflow as tf
from tensorflow import estimator as est


def input_fn():
  x = np.ones([8, 1], 'float32')
  return tf.data.Dataset.from_tensor_slices((x, 2 * x)).repeat().batch(4)


def model_fn(features, labels, mode):
  w = tf.compat.v1.get_variable(
      'w', [], initializer=tf.compat.v1.zeros_initializer())
  loss = tf.reduce_mean(input_tensor=tf.square(features * w - labels))
  train_op = tf.compat.v1.train.GradientDescentOptimizer(0.25).minimize(
      loss, tf.compat.v1.train.get_global_step())
  return est.EstimatorSpec(mode, loss=loss, train_op=train_op)


def main():
  # One thread: every hook reads the step before the update, and none after it.
  one_thread = tf.compat.v1.ConfigProto(inter_op_parallelism_threads=1)
  estimator = est.Estimator(
      model_fn, 'out', est.RunConfig(
          save_checkpoints_steps=2, session_config=one_thread))
  stop = est.experimental.stop_if_no_decrease_hook(
      estimator, 'loss', max_steps_without_decrease=4, run_every_secs=None,
      run_every_steps=1)
  lower = est.experimental.stop_if_lower_hook(
      estimator, 'loss', threshold=0.05, run_every_secs=None, run_every_steps=1)
  evaluation = tf.estimator.experimental.InMemoryEvaluatorHook(
      estimator, input_fn, steps=1, every_n_iter=2)
  estimator.train(input_fn, hooks=[stop, lower, evaluation], max_steps=20)
  print('step', estimator.get_variable_value('global_step'),
        'w', estimator.get_variable_value('w'))


if __name__ == '__main__':
  main()
