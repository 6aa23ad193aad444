"""Listeners of checkpoints, in an Estimator that brings its own saver."""
import tensorflow as tf
from tensorflow.python.training.basic_session_run_hooks import CheckpointSaverHook
from tensorflow.python.training.basic_session_run_hooks import CheckpointSaverListener


class Saves(CheckpointSaverListener):
  """Prints each save."""

  def __init__(self, name):
    self._name = name

  def begin(self):
    print(self._name, 'begin')

  def before_save(self, session, global_step_value):
    print(self._name, 'before', global_step_value)

  def after_save(self, session, global_step_value):
    print(self._name, 'after', global_step_value)
    with open('saves.txt', 'a') as file:
      file.write('%d\n' % global_step_value)

  def end(self, session, global_step_value):
    print(self._name, 'end', global_step_value)


def model_fn(features, labels, mode):
  w = tf.compat.v1.get_variable(
      'w', [], initializer=tf.compat.v1.ones_initializer())
  loss = tf.reduce_mean(input_tensor=tf.square(features * w))
  train_op = tf.compat.v1.train.GradientDescentOptimizer(0.1).minimize(
      loss, tf.compat.v1.train.get_global_step())
  saver = CheckpointSaverHook(
      'out', save_steps=3, saver=tf.compat.v1.train.Saver(),
      listeners=[Saves('own')])
  return tf.estimator.EstimatorSpec(
      mode, loss=loss, train_op=train_op, training_hooks=[saver])


def main():
  estimator = tf.estimator.Estimator(
      model_fn, 'out', tf.estimator.RunConfig(save_checkpoints_steps=4))
  estimator.train(
      lambda: tf.data.Dataset.from_tensors(2.0).repeat(), steps=6,
      saving_listeners=[Saves('listener')])
  print('step', estimator.get_variable_value('global_step'), 'w',
        estimator.get_variable_value('w'))


if __name__ == '__main__':
  main()
