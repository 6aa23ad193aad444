"""A hook that feeds the learning rate, as a ResNet of its time does."""
import tensorflow as tf


class RateSetter(tf.train.SessionRunHook):
  """Lowers the rate as training goes on."""

  def __init__(self, rate):
    self._rate = rate
    self._value = 0.4
    self._runs = 0

  def before_run(self, run_context):
    return tf.train.SessionRunArgs(None, feed_dict={self._rate: self._value})

  def after_run(self, run_context, run_values):
    self._runs += 1
    if self._runs >= 3:
      self._value = 0.1


def main():
  with tf.Graph().as_default():
    rate = tf.placeholder_with_default(1.0, [], name='rate')
    x = tf.get_variable('x', [], initializer=tf.constant_initializer(4.0))
    loss = tf.square(x, name='loss')
    step = tf.train.get_or_create_global_step()
    optimizer = tf.train.GradientDescentOptimizer(rate)
    gradients = optimizer.compute_gradients(loss)
    with tf.control_dependencies([loss]):  # it is read before the update
      train_op = optimizer.apply_gradients(gradients, step)
    logging = tf.train.LoggingTensorHook({'loss': loss, 'rate': rate}, every_n_iter=2)
    with tf.train.MonitoredTrainingSession(
        hooks=[RateSetter(rate), logging],
        chief_only_hooks=[tf.train.StopAtStepHook(num_steps=7)]) as session:
      while not session.should_stop():
        _, value = session.run([train_op, loss])
        print('loss', value)


if __name__ == '__main__':
  main()
