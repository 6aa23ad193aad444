"""ResNet whose learning rate comes from a hook."""
import sys

import numpy as np
import resnet_model
import tensorflow as tf

FLAGS = tf.app.flags.FLAGS
tf.app.flags.DEFINE_string('log_root', '',
                           'Directory to keep the checkpoints.')
tf.app.flags.DEFINE_string('train_dir', '',
                           'Directory to keep training outputs.')
tf.app.flags.DEFINE_integer('max_steps', 10, 'Steps of the training.')


def build_input(batch_size, num_classes):
  """Builds image and label queues over arrays that the graph holds."""
  random = np.random.RandomState(7)
  labels = np.arange(64) % num_classes
  images = random.randn(64, 8, 8, 3).astype(np.float32)
  images[np.arange(64), labels] += 1.5
  image, label = tf.train.slice_input_producer(
      [tf.constant(images), tf.constant(labels.astype(np.int32))],
      shuffle=False)
  images, labels = tf.train.batch([image, label], batch_size)
  labels = tf.reshape(labels, [batch_size, 1])
  indices = tf.reshape(tf.range(0, batch_size, 1), [batch_size, 1])
  labels = tf.sparse_to_dense(
      tf.concat(values=[indices, labels], axis=1),
      [batch_size, num_classes], 1.0, 0.0)
  return images, labels


def train(hps):
  """Training loop."""
  images, labels = build_input(hps.batch_size, hps.num_classes)
  model = resnet_model.ResNet(hps, images, labels)
  model.build_graph()

  param_stats = tf.contrib.tfprof.model_analyzer.print_model_analysis(
      tf.get_default_graph(),
      tfprof_options=tf.contrib.tfprof.model_analyzer.
          TRAINABLE_VARS_PARAMS_STAT_OPTIONS)
  sys.stdout.write('total_params: %d\n' % param_stats.total_parameters)

  truth = tf.argmax(model.labels, axis=1)
  predictions = tf.argmax(model.predictions, axis=1)
  precision = tf.reduce_mean(tf.to_float(tf.equal(predictions, truth)))

  summary_hook = tf.train.SummarySaverHook(
      save_steps=4,
      output_dir=FLAGS.train_dir,
      summary_op=tf.summary.merge([model.summaries,
                                   tf.summary.scalar('Precision', precision)]))

  logging_hook = tf.train.LoggingTensorHook(
      tensors={'step': model.global_step,
               'loss': model.cost,
               'precision': precision},
      every_n_iter=1)

  class _LearningRateSetterHook(tf.train.SessionRunHook):
    """Sets learning_rate based on global step."""

    def begin(self):
      self._lrn_rate = 0.002

    def before_run(self, run_context):
      return tf.train.SessionRunArgs(
          model.global_step,  # Asks for global step value.
          feed_dict={model.lrn_rate: self._lrn_rate})  # Sets learning rate

    def after_run(self, run_context, run_values):
      train_step = run_values.results
      if train_step < 4:
        self._lrn_rate = 0.002
      elif train_step < 7:
        self._lrn_rate = 0.001
      else:
        self._lrn_rate = 0.0005

  with tf.train.MonitoredTrainingSession(
      checkpoint_dir=FLAGS.log_root,
      hooks=[logging_hook, _LearningRateSetterHook(),
             tf.train.StopAtStepHook(last_step=FLAGS.max_steps)],
      chief_only_hooks=[summary_hook],
      # Since we provide a SummarySaverHook, we need to disable default
      # SummarySaverHook. To do that we set save_summaries_steps to 0.
      save_summaries_steps=0,
      config=tf.ConfigProto(allow_soft_placement=True)) as mon_sess:
    while not mon_sess.should_stop():
      mon_sess.run(model.train_op)


def main(_):
  hps = resnet_model.HParams(batch_size=16, num_classes=4, lrn_rate=0.1,
                             num_residual_units=2, weight_decay_rate=0.0002,
                             relu_leakiness=0.1)
  with tf.device('/cpu:0'):
    train(hps)


if __name__ == '__main__':
  tf.logging.set_verbosity(tf.logging.INFO)
  tf.app.run()
