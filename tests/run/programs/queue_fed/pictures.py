"""Builds the network: inference(), loss(), train()."""
import tensorflow as tf

import pictures_input

FLAGS = tf.app.flags.FLAGS

tf.app.flags.DEFINE_integer('batch_size', 16, """Pictures in a batch.""")
tf.app.flags.DEFINE_string('data_dir', '/tmp/pictures_data',
                           """Path to the data directory.""")


def _variable_on_cpu(name, shape, initializer):
  with tf.device('/cpu:0'):
    return tf.get_variable(name, shape, initializer=initializer)


def _variable_with_weight_decay(shape, stddev, wd, seed):
  var = _variable_on_cpu('weights', shape, tf.truncated_normal_initializer(
      stddev=stddev, seed=seed))
  if wd is not None:
    weight_decay = tf.multiply(tf.nn.l2_loss(var), wd, name='weight_loss')
    tf.add_to_collection('losses', weight_decay)
  return var


def inputs():
  return pictures_input.inputs(FLAGS.data_dir, FLAGS.batch_size)


def inference(images):
  """Build the model up to where logits may be computed."""
  with tf.variable_scope('conv1') as scope:
    kernel = _variable_with_weight_decay([5, 5, 3, 4], 5e-2, None, 1)
    conv = tf.nn.conv2d(images, kernel, [1, 1, 1, 1], padding='SAME')
    biases = _variable_on_cpu('biases', [4], tf.constant_initializer(0.0))
    conv1 = tf.nn.relu(tf.nn.bias_add(conv, biases), name=scope.name)
    tf.summary.scalar('sparsity', tf.nn.zero_fraction(conv1))
  pool1 = tf.nn.max_pool(conv1, ksize=[1, 3, 3, 1], strides=[1, 2, 2, 1],
                         padding='SAME', name='pool1')
  norm1 = tf.nn.lrn(pool1, 4, bias=1.0, alpha=0.001 / 9.0, beta=0.75,
                    name='norm1')
  with tf.variable_scope('softmax_linear') as scope:
    reshape = tf.reshape(norm1, [images.get_shape().as_list()[0], -1])
    dim = reshape.get_shape()[1].value
    classes = pictures_input.NUM_CLASSES
    weights = _variable_with_weight_decay([dim, classes], 0.04, 0.004, 2)
    biases = _variable_on_cpu('biases', [classes],
                              tf.constant_initializer(0.1))
    return tf.add(tf.matmul(reshape, weights), biases, name=scope.name)


def loss(logits, labels):
  """Adds L2Loss to all the trainable variables."""
  cross_entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(
      labels=tf.cast(labels, tf.int64), logits=logits)
  cross_entropy_mean = tf.reduce_mean(cross_entropy, name='cross_entropy')
  tf.add_to_collection('losses', cross_entropy_mean)
  return tf.add_n(tf.get_collection('losses'), name='total_loss')


def train(total_loss, global_step):
  """Train the model: gradients, summaries and moving averages."""
  lr = tf.train.exponential_decay(0.05, global_step, 5, 0.5, staircase=True)
  tf.summary.scalar('learning_rate', lr)
  loss_averages = tf.train.ExponentialMovingAverage(0.9, name='avg')
  loss_averages_op = loss_averages.apply([total_loss])
  tf.summary.scalar(total_loss.op.name, loss_averages.average(total_loss))
  with tf.control_dependencies([loss_averages_op]):
    opt = tf.train.GradientDescentOptimizer(lr)
    grads = opt.compute_gradients(total_loss)
  apply_gradient_op = opt.apply_gradients(grads, global_step=global_step)
  for grad, var in grads:
    tf.summary.histogram(var.op.name + '/gradients', grad)
  variable_averages = tf.train.ExponentialMovingAverage(0.9999, global_step)
  with tf.control_dependencies([apply_gradient_op]):
    return variable_averages.apply(tf.trainable_variables())
