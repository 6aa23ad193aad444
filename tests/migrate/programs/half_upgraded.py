"""A program that `tf_upgrade_v2` has been through, and a person after it."""
import numpy as np
import tensorflow as tf
try:
  from tensorflow.contrib.framework import get_or_create_global_step
except ImportError:
  from tensorflow.compat.v1.train import get_or_create_global_step
from tensorflow_estimator.python.estimator import model_fn as model_fn_lib
from tensorflow.python.training import session_run_hook

learning = tf.compat.v1.train


class Watch(session_run_hook.SessionRunHook):
  """Prints the loss."""

  def before_run(self, run_context):
    return session_run_hook.SessionRunArgs(self.loss)

  def after_run(self, run_context, run_values):
    print('loss', run_values.results)


def model_fn(features, labels, mode):
  net = tf.compat.v1.layers.dense(
      features['x'], 3, activation=tf.nn.relu,
      kernel_initializer=tf.compat.v1.ones_initializer())
  out = tf.compat.v1.layers.dense(
      net, 1, kernel_initializer=tf.compat.v1.ones_initializer())
  loss = tf.compat.v1.losses.mean_squared_error(labels, out)
  step = get_or_create_global_step()
  watch = Watch()
  watch.loss = loss
  with tf.device(learning.replica_device_setter(0)):
    train_op = learning.GradientDescentOptimizer(0.01).minimize(loss, step)
  return model_fn_lib.EstimatorSpec(
      mode, loss=loss, train_op=train_op,
      training_hooks=[watch, tf.estimator.StepCounterHook(every_n_steps=2,
                                                          output_dir='counter')])


def main(unused_argv):
  x = np.linspace(0, 1, 24, dtype='float32').reshape(12, 2)
  data = tf.compat.v1.estimator.inputs.numpy_input_fn(
      {'x': x}, x[:, :1], batch_size=6, shuffle=False, num_epochs=None)
  estimator = tf.estimator.Estimator(
      model_fn, 'out', tf.estimator.RunConfig(save_checkpoints_steps=3))
  estimator.train(data, max_steps=6)


if __name__ == '__main__':
  tf.compat.v1.app.run(main)
