"""Generic training script that trains a model of slim."""
import numpy as np
import tensorflow as tf
from tensorflow.contrib import slim

import nets

tf.app.flags.DEFINE_string('train_dir', '/tmp/slim_model',
                           'Where checkpoints and events are written.')
tf.app.flags.DEFINE_integer('max_number_of_steps', 10, 'Number of steps.')
tf.app.flags.DEFINE_integer('batch_size', 16, 'Samples in each batch.')

FLAGS = tf.app.flags.FLAGS


def _batches(num_classes, size=12):
  random = np.random.RandomState(3)
  labels = np.arange(64) % num_classes
  images = random.rand(64, size, size, 1).astype(np.float32)
  images[np.arange(64), labels] += 1.
  image, label = tf.train.slice_input_producer(
      [tf.constant(images), tf.constant(labels)], shuffle=False)
  images, labels = tf.train.batch([image, label], FLAGS.batch_size,
                                  num_threads=1)
  labels = slim.one_hot_encoding(labels, num_classes)
  batch_queue = slim.prefetch_queue.prefetch_queue([images, labels],
                                                   capacity=2)
  return batch_queue.dequeue()


def main(_):
  tf.logging.set_verbosity(tf.logging.INFO)
  with tf.Graph().as_default():
    global_step = slim.create_global_step()
    images, labels = _batches(10)
    with slim.arg_scope(nets.lenet_arg_scope(0.0004)):
      logits, end_points = nets.lenet(images, 10, is_training=True)
    slim.losses.softmax_cross_entropy(
        logits, labels, label_smoothing=0.1, weights=1.0)
    regularization = tf.add_n(tf.losses.get_regularization_losses())
    total_loss = slim.losses.get_total_loss(
        add_regularization_losses=False) + regularization

    for end_point in end_points:
      tf.summary.scalar('sparsity/' + end_point,
                        tf.nn.zero_fraction(end_points[end_point]))
    for variable in slim.get_model_variables():
      tf.summary.histogram(variable.op.name, variable)

    learning_rate = tf.train.exponential_decay(
        0.05, global_step, 4, 0.9, staircase=True)
    optimizer = tf.train.RMSPropOptimizer(
        learning_rate, decay=0.9, momentum=0.9, epsilon=1.0)
    update_ops = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    train_op = slim.learning.create_train_op(
        total_loss, optimizer, global_step=global_step, update_ops=update_ops,
        clip_gradient_norm=4.0, summarize_gradients=False)

    def train_step_fn(session, *args, **kwargs):
      loss_value, should_stop = slim.learning.train_step(
          session, *args, **kwargs)
      print('total_loss: %.7f' % loss_value)
      return loss_value, should_stop

    final = slim.learning.train(
        train_op,
        logdir=FLAGS.train_dir,
        train_step_fn=train_step_fn,
        summary_op=tf.summary.merge_all(),
        number_of_steps=FLAGS.max_number_of_steps,
        log_every_n_steps=5,
        save_summaries_secs=600,
        save_interval_secs=600)
    print('final_loss: %.7f' % final)


if __name__ == '__main__':
  tf.app.run()
