"""Trains on queues of pictures in a MonitoredTrainingSession."""
from datetime import datetime
import time

import tensorflow as tf

import pictures

FLAGS = tf.app.flags.FLAGS

tf.app.flags.DEFINE_string('train_dir', '/tmp/pictures_train',
                           """Directory of event logs and checkpoints.""")
tf.app.flags.DEFINE_integer('max_steps', 14, """Number of batches to run.""")


def train():
  """Train for a number of steps."""
  with tf.Graph().as_default():
    global_step = tf.train.get_or_create_global_step()

    # Force input pipeline to CPU:0 to avoid operations sometimes ending up on
    # GPU and resulting in a slow down.
    with tf.device('/cpu:0'):
      images, labels = pictures.inputs()
    loss = pictures.loss(pictures.inference(images), labels)
    train_op = pictures.train(loss, global_step)

    class _LoggerHook(tf.train.SessionRunHook):
      """Logs loss and runtime."""

      def begin(self):
        self._step = -1
        self._start_time = time.time()

      def before_run(self, run_context):
        self._step += 1
        return tf.train.SessionRunArgs(loss)  # Asks for loss value.

      def after_run(self, run_context, run_values):
        duration = time.time() - self._start_time
        self._start_time += duration
        format_str = ('%s: step %d, loss = %.7f (%.1f examples/sec)')
        print(format_str % (datetime.now(), self._step, run_values.results,
                            FLAGS.batch_size / duration))

    with tf.train.MonitoredTrainingSession(
        checkpoint_dir=FLAGS.train_dir,
        hooks=[tf.train.StopAtStepHook(last_step=FLAGS.max_steps),
               tf.train.NanTensorHook(loss),
               _LoggerHook()],
        save_summaries_steps=5) as mon_sess:
      while not mon_sess.should_stop():
        mon_sess.run(train_op)


def main(argv=None):  # pylint: disable=unused-argument
  tf.gfile.MakeDirs(FLAGS.train_dir)
  train()


if __name__ == '__main__':
  tf.app.run()
