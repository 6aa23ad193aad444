"""A residual network with hand-made batch normalisation."""
from collections import namedtuple

import numpy as np
import six
import tensorflow as tf

from tensorflow.python.training import moving_averages


HParams = namedtuple('HParams',
                     'batch_size, num_classes, lrn_rate, num_residual_units, '
                     'weight_decay_rate, relu_leakiness')


class ResNet(object):
  """ResNet model."""

  def __init__(self, hps, images, labels):
    self.hps = hps
    self._images = images
    self.labels = labels
    self._seed = 0
    self._extra_train_ops = []

  def build_graph(self):
    """Build a whole graph for the model."""
    self.global_step = tf.contrib.framework.get_or_create_global_step()
    self._build_model()
    self._build_train_op()
    self.summaries = tf.summary.merge_all()

  def _stride_arr(self, stride):
    return [1, stride, stride, 1]

  def _build_model(self):
    with tf.variable_scope('init'):
      x = self._conv('init_conv', self._images, 3, 3, 4, self._stride_arr(1))
    filters = [4, 4, 8]
    for i, stride in enumerate([1, 2], 1):
      with tf.variable_scope('unit_%d_0' % i):
        x = self._residual(x, filters[i - 1], filters[i],
                           self._stride_arr(stride), i == 1)
      for j in six.moves.range(1, self.hps.num_residual_units):
        with tf.variable_scope('unit_%d_%d' % (i, j)):
          x = self._residual(x, filters[i], filters[i], self._stride_arr(1),
                             False)
    with tf.variable_scope('unit_last'):
      x = self._batch_norm('final_bn', x)
      x = self._relu(x, self.hps.relu_leakiness)
      x = self._global_avg_pool(x)
    with tf.variable_scope('logit'):
      logits = self._fully_connected(x, self.hps.num_classes)
      self.predictions = tf.nn.softmax(logits)
    with tf.variable_scope('costs'):
      xent = tf.nn.softmax_cross_entropy_with_logits(
          logits=logits, labels=self.labels)
      self.cost = tf.reduce_mean(xent, name='xent')
      self.cost += self._decay()
      tf.summary.scalar('cost', self.cost)

  def _build_train_op(self):
    """Build training specific ops for the graph."""
    self.lrn_rate = tf.constant(self.hps.lrn_rate, tf.float32)
    tf.summary.scalar('learning_rate', self.lrn_rate)
    trainable_variables = tf.trainable_variables()
    grads = tf.gradients(self.cost, trainable_variables)
    optimizer = tf.train.MomentumOptimizer(self.lrn_rate, 0.9)
    apply_op = optimizer.apply_gradients(
        zip(grads, trainable_variables),
        global_step=self.global_step, name='train_step')
    self.train_op = tf.group(apply_op, *self._extra_train_ops)

  def _batch_norm(self, name, x):
    """Batch normalization."""
    with tf.variable_scope(name):
      params_shape = [x.get_shape()[-1]]
      zeros = tf.constant_initializer(0.0, tf.float32)
      ones = tf.constant_initializer(1.0, tf.float32)
      beta = tf.get_variable('beta', params_shape, tf.float32, zeros)
      gamma = tf.get_variable('gamma', params_shape, tf.float32, ones)
      mean, variance = tf.nn.moments(x, [0, 1, 2], name='moments')
      moving_mean = tf.get_variable(
          'moving_mean', params_shape, tf.float32, zeros, trainable=False)
      moving_variance = tf.get_variable(
          'moving_variance', params_shape, tf.float32, ones, trainable=False)
      self._extra_train_ops.append(moving_averages.assign_moving_average(
          moving_mean, mean, 0.9))
      self._extra_train_ops.append(moving_averages.assign_moving_average(
          moving_variance, variance, 0.9))
      y = tf.nn.batch_normalization(x, mean, variance, beta, gamma, 0.001)
      y.set_shape(x.get_shape())
      return y

  def _residual(self, x, in_filter, out_filter, stride,
                activate_before_residual=False):
    """Residual unit with 2 sub layers."""
    orig_x = x
    with tf.variable_scope('shared_activation' if activate_before_residual
                           else 'residual_only_activation'):
      x = self._batch_norm('init_bn', x)
      x = self._relu(x, self.hps.relu_leakiness)
    if activate_before_residual:
      orig_x = x
    with tf.variable_scope('sub1'):
      x = self._conv('conv1', x, 3, in_filter, out_filter, stride)
    with tf.variable_scope('sub2'):
      x = self._batch_norm('bn2', x)
      x = self._relu(x, self.hps.relu_leakiness)
      x = self._conv('conv2', x, 3, out_filter, out_filter, [1, 1, 1, 1])
    with tf.variable_scope('sub_add'):
      if in_filter != out_filter:
        orig_x = tf.nn.avg_pool(orig_x, stride, stride, 'VALID')
        orig_x = tf.pad(
            orig_x, [[0, 0], [0, 0], [0, 0],
                     [(out_filter - in_filter) // 2,
                      (out_filter - in_filter) // 2]])
      x += orig_x
    return x

  def _decay(self):
    """L2 weight decay loss."""
    costs = [tf.nn.l2_loss(var) for var in tf.trainable_variables()
             if var.op.name.find(r'DW') > 0]
    return tf.multiply(self.hps.weight_decay_rate, tf.add_n(costs))

  def _conv(self, name, x, filter_size, in_filters, out_filters, strides):
    with tf.variable_scope(name):
      n = filter_size * filter_size * out_filters
      self._seed += 1
      kernel = tf.get_variable(
          'DW', [filter_size, filter_size, in_filters, out_filters],
          tf.float32, initializer=tf.random_normal_initializer(
              stddev=np.sqrt(2.0/n), seed=self._seed))
      return tf.nn.conv2d(x, kernel, strides, padding='SAME')

  def _relu(self, x, leakiness=0.0):
    return tf.where(tf.less(x, 0.0), leakiness * x, x, name='leaky_relu')

  def _fully_connected(self, x, out_dim):
    x = tf.reshape(x, [self.hps.batch_size, -1])
    w = tf.get_variable(
        'DW', [x.get_shape()[1], out_dim],
        initializer=tf.uniform_unit_scaling_initializer(factor=1.0, seed=99))
    b = tf.get_variable('biases', [out_dim],
                        initializer=tf.constant_initializer())
    return tf.nn.xw_plus_b(x, w, b)

  def _global_avg_pool(self, x):
    return tf.reduce_mean(x, [1, 2])
