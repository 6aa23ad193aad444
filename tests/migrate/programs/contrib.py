"""A program of TensorFlow 1 that lives on `tf.contrib`."""
from __future__ import print_function

import numpy as np
import tensorflow as tf
from tensorflow.contrib import layers as contrib_layers
from tensorflow.contrib import slim
from tensorflow.contrib.framework import arg_scope
from tensorflow.contrib.learn.python.learn.estimators.run_config import RunConfig
from tensorflow.contrib.training.python.training import hparam


def model_fn(features, labels, mode, params):
  ones = tf.ones_initializer()
  with arg_scope([slim.fully_connected], weights_initializer=ones,
                 weights_regularizer=contrib_layers.l2_regularizer(0.01)):
    net = slim.fully_connected(features['x'], 3, activation_fn=tf.nn.tanh)
    table = tf.contrib.lookup.index_table_from_tensor(
        mapping=tf.constant(['a', 'b']))
    weight = tf.to_float(table.lookup(tf.constant(['b'])))
    out = slim.fully_connected(net, 1, activation_fn=None)
  tf.losses.mean_squared_error(labels, out * weight)
  loss = tf.losses.get_total_loss()
  update = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
  with tf.control_dependencies(update):
    train_op = tf.train.GradientDescentOptimizer(params.rate).minimize(
        loss, tf.contrib.framework.get_or_create_global_step())
  return tf.estimator.EstimatorSpec(
      mode, loss=loss, train_op=train_op,
      training_hooks=[tf.train.LoggingTensorHook({'loss': loss}, every_n_iter=1)],
      eval_metric_ops={'mse': tf.contrib.metrics.streaming_mean_squared_error(
          out, labels)})


def main(_):
  tf.logging.set_verbosity(tf.logging.INFO)
  params = hparam.HParams(rate=0.1)
  x = np.linspace(-1, 1, 24).reshape(12, 2).astype('float32')
  y = x.sum(axis=1, keepdims=True)
  data = tf.estimator.inputs.numpy_input_fn(
      {'x': x}, y, batch_size=6, shuffle=False, num_epochs=None)
  estimator = tf.estimator.Estimator(
      model_fn, 'out', RunConfig(tf_random_seed=1, save_checkpoints_steps=3),
      params=params)
  estimator.train(data, steps=6)
  result = estimator.evaluate(data, steps=2)
  print('step', result['global_step'], 'eval_loss', result['loss'], 'mse',
        result['mse'])


if __name__ == '__main__':
  tf.app.run()
