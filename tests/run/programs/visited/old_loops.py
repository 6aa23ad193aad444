"""An Estimator, a monitored session and a plain one, each trained after the other.

With the argument `inside` it gives the guests to its loops itself.
"""

import os
import sys

import numpy as np
import tensorflow as tf

slim = tf.contrib.slim
INSIDE = 'inside' in sys.argv
STEPS_PER_EPOCH = 4


def more_hooks(validation=None):
  if not INSIDE:
    return []
  import guests
  import hookbridge as hb
  return hb.as_hooks(guests.guests(), steps_per_epoch=STEPS_PER_EPOCH,
                     validation=validation)


def input_fn():
  x = np.arange(40, dtype=np.float32).reshape([40, 1]) / 40
  return tf.data.Dataset.from_tensor_slices((x, 3 * x)).repeat().batch(10)


def network(x, y):
  w = tf.get_variable('w', [1, 1], initializer=tf.ones_initializer())
  return tf.reduce_mean(tf.square(tf.matmul(x, w) - y), name='loss')


def model_fn(features, labels, mode):
  # A graph of predictions can train here too, and has no guests all the same.
  loss = network(features, features if labels is None else labels)
  train_op = tf.train.GradientDescentOptimizer(0.1).minimize(
      loss, tf.train.get_global_step())
  return tf.estimator.EstimatorSpec(
      mode, {'loss': tf.reshape(loss, [1])}, loss=loss, train_op=train_op)


class NamedSession(tf.train.MonitoredSession.__base__):
  """A session of a library, which names the arguments it passes on."""

  def __init__(self, hooks):
    super().__init__(session_creator=tf.train.ChiefSessionCreator(), hooks=hooks,
                     should_recover=True)


def in_folder(name):
  os.makedirs(name)
  os.chdir(name)
  print('now', name)


def main(_):
  in_folder('estimator')
  estimator = tf.estimator.Estimator(model_fn, model_dir=os.path.abspath('m'))
  eval_spec = tf.estimator.EvalSpec(
      input_fn, steps=2, start_delay_secs=0, throttle_secs=3600,
      hooks=more_hooks())
  plain_spec = tf.estimator.EvalSpec(input_fn, steps=2)
  train_spec = tf.estimator.TrainSpec(
      input_fn, max_steps=20,
      hooks=more_hooks(validation=(estimator, plain_spec)))
  tf.estimator.train_and_evaluate(estimator, train_spec, eval_spec)
  print('estimator ends at', estimator.get_variable_value('global_step'))
  print('predicts', next(estimator.predict(input_fn))['loss'])

  in_folder('../session')
  with tf.Graph().as_default():
    x, y = tf.data.make_one_shot_iterator(input_fn()).get_next()
    loss = network(x, y)
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(
        loss, tf.train.get_or_create_global_step())
    hooks = [tf.train.StopAtStepHook(last_step=20)] + more_hooks()
    with tf.train.MonitoredTrainingSession(hooks=hooks) as session:
      while not session.should_stop():
        value = session.run([train_op, loss])[1]
    print('session ends with', value)

  # What cannot train has no guests.
  with tf.Graph().as_default():
    x, y = tf.data.make_one_shot_iterator(input_fn()).get_next()
    loss = network(x, y)
    tf.train.get_or_create_global_step()
    with NamedSession([]) as session:
      session.run(loss)

  in_folder('../plain')
  with tf.Graph().as_default():
    x, y = tf.data.make_one_shot_iterator(input_fn()).get_next()
    loss = network(x, y)
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    with tf.Session() as sess:
      sess.run(tf.global_variables_initializer())
      for _ in range(3):
        _, value = sess.run([train_op, loss])
  print('plain ends with', value)

  with tf.Graph().as_default():
    loss = tf.reduce_sum(tf.square(tf.get_variable('w', [2])))
    train_op = slim.learning.create_train_op(
        loss, tf.train.GradientDescentOptimizer(0.1))
    # A library runs the session.
    slim.learning.train(train_op, None, number_of_steps=2)


if __name__ == '__main__':
  tf.app.run(argv=sys.argv[:1])
