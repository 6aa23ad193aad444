"""Small networks in the way of slim's own."""
import tensorflow as tf
from tensorflow.contrib import layers as contrib_layers

slim = tf.contrib.slim


def _initializer(seed):
  return tf.truncated_normal_initializer(stddev=0.1, seed=seed)


def lenet(images, num_classes=10, is_training=False, scope='LeNet'):
  """Creates a variant of the LeNet model."""
  end_points = {}
  with tf.variable_scope(scope, 'LeNet', [images]):
    net = end_points['conv1'] = slim.conv2d(
        images, 4, [5, 5], scope='conv1', weights_initializer=_initializer(1))
    net = end_points['pool1'] = slim.max_pool2d(net, [2, 2], 2, scope='pool1')
    net = end_points['conv2'] = slim.conv2d(
        net, 6, [3, 3], scope='conv2', normalizer_fn=slim.batch_norm,
        normalizer_params={'is_training': is_training, 'decay': 0.9,
                           'epsilon': 1e-3},
        weights_initializer=_initializer(2))
    net = slim.max_pool2d(net, [2, 2], 2, scope='pool2')
    net = slim.flatten(net)
    end_points['Flatten'] = net
    net = end_points['fc3'] = slim.fully_connected(
        net, 16, scope='fc3', weights_initializer=_initializer(3))
    net = end_points['dropout3'] = slim.dropout(
        net, 1.0, is_training=is_training, scope='dropout3')
    logits = end_points['Logits'] = slim.fully_connected(
        net, num_classes, activation_fn=None, scope='fc4',
        weights_initializer=_initializer(4))
  end_points['Predictions'] = slim.softmax(logits, scope='Predictions')
  return logits, end_points


def lenet_arg_scope(weight_decay=0.0):
  """Defines the default lenet argument scope."""
  with slim.arg_scope(
      [slim.conv2d, slim.fully_connected],
      weights_regularizer=contrib_layers.l2_regularizer(weight_decay),
      activation_fn=tf.nn.relu) as sc:
    return sc
