"""A Keras model at hand, trained and evaluated in one call of Estimator."""
import numpy as np
import tensorflow as tf


class Steps(tf.estimator.SessionRunHook):
  """Counts the steps."""

  def begin(self):
    self.seen = 0

  def after_run(self, run_context, run_values):
    self.seen += 1

  def end(self, session):
    print('seen', self.seen)


def input_fn():
  x = np.linspace(0, 1, 16, dtype='float32').reshape(8, 2)
  return tf.data.Dataset.from_tensor_slices(
      (x, 3 * x.sum(axis=1, keepdims=True))).repeat().batch(4)


tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.INFO)
model = tf.keras.Sequential([
    tf.keras.layers.Dense(1, input_shape=(2,), kernel_initializer='ones')])
model.compile(tf.keras.optimizers.legacy.SGD(0.1), 'mse')
estimator = tf.keras.estimator.model_to_estimator(model)
train_spec = tf.estimator.TrainSpec(input_fn, max_steps=7, hooks=[Steps()])
eval_spec = tf.estimator.EvalSpec(input_fn, steps=2, throttle_secs=30)
tf.estimator.train_and_evaluate(estimator, train_spec, eval_spec)
