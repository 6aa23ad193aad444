"""Convolutional Neural Network Estimator for MNIST, on several devices."""
import argparse
import os
import sys

import tensorflow as tf
from tensorflow.examples.tutorials.mnist import input_data

import digits

LEARNING_RATE = 1e-3


def model_fn(features, labels, mode, params):
  """The model_fn argument for creating an Estimator."""
  image = features
  if isinstance(image, dict):
    image = features['image']
  net = tf.reshape(image, [-1, 28, 28, 1])

  def init(seed):
    return tf.glorot_uniform_initializer(seed=seed)

  net = tf.layers.conv2d(net, 4, 5, padding='same', activation=tf.nn.relu,
                         kernel_initializer=init(1), name='conv1')
  net = tf.layers.max_pooling2d(net, 4, 4)
  net = tf.layers.flatten(net)
  net = tf.layers.dense(net, 16, activation=tf.nn.relu,
                        kernel_initializer=init(2), name='fc1')
  logits = tf.layers.dense(net, 10, kernel_initializer=init(4), name='fc2')

  if mode == tf.estimator.ModeKeys.PREDICT:
    predictions = {
        'classes': tf.argmax(logits, axis=1),
        'probabilities': tf.nn.softmax(logits),
    }
    return tf.estimator.EstimatorSpec(
        mode=tf.estimator.ModeKeys.PREDICT,
        predictions=predictions,
        export_outputs={
            'classify': tf.estimator.export.PredictOutput(predictions)
        })
  loss = tf.losses.sparse_softmax_cross_entropy(labels=labels, logits=logits)
  accuracy = tf.metrics.accuracy(
      labels=labels, predictions=tf.argmax(logits, axis=1))
  if mode == tf.estimator.ModeKeys.TRAIN:
    optimizer = tf.train.AdamOptimizer(learning_rate=LEARNING_RATE)
    if params.get('multi_gpu'):
      optimizer = tf.contrib.estimator.TowerOptimizer(optimizer)

    tf.summary.scalar('train_accuracy', accuracy[1])

    return tf.estimator.EstimatorSpec(
        mode=tf.estimator.ModeKeys.TRAIN,
        loss=loss,
        train_op=optimizer.minimize(loss, tf.train.get_or_create_global_step()))
  return tf.estimator.EstimatorSpec(
      mode=tf.estimator.ModeKeys.EVAL,
      loss=loss,
      eval_metric_ops={'accuracy': accuracy})


def parse():
  """The flags, and what is left for `tf.app.run`."""
  parser = argparse.ArgumentParser()
  parser.add_argument('--multi_gpu', action='store_true')
  parser.add_argument('--data_dir', default='/tmp/mnist_data')
  parser.add_argument('--model_dir', default='/tmp/mnist_model')
  parser.add_argument('--export_dir', default=None)
  return parser.parse_known_args()


def main(_):
  digits.write(flags.data_dir)
  mnist = input_data.read_data_sets(flags.data_dir, validation_size=5000)

  model_function = model_fn
  session_config = tf.ConfigProto(allow_soft_placement=True)
  if flags.multi_gpu:
    # No GPUs here: two devices of the CPU stand for them.
    session_config.device_count['CPU'] = 2
    model_function = tf.contrib.estimator.replicate_model_fn(
        model_fn, loss_reduction=tf.losses.Reduction.MEAN,
        devices=['/device:CPU:0', '/device:CPU:1'])

  mnist_classifier = tf.estimator.Estimator(
      model_fn=model_function,
      model_dir=flags.model_dir,
      config=tf.estimator.RunConfig(session_config=session_config,
                                    log_step_count_steps=4),
      params={'multi_gpu': flags.multi_gpu})

  def input_fn_of(part, batch_size, num_epochs):
    return tf.estimator.inputs.numpy_input_fn(
        {'image': part.images}, part.labels.astype('int32'), batch_size,
        num_epochs, shuffle=False)

  mnist_classifier.train(input_fn_of(mnist.train, 40, None), steps=8)

  eval_results = mnist_classifier.evaluate(
      input_fn_of(mnist.test, 50, 1))
  print('Evaluation results:\n\t%s' % sorted(eval_results))

  if flags.export_dir is not None:
    image = tf.placeholder(tf.float32, [None, 28, 28])
    input_fn = tf.estimator.export.build_raw_serving_input_receiver_fn(
        {'image': image})
    mnist_classifier.export_savedmodel(flags.export_dir, input_fn)
    assert os.listdir(flags.export_dir)


if __name__ == '__main__':
  tf.logging.set_verbosity(tf.logging.INFO)
  flags, unparsed = parse()
  tf.app.run(main=main, argv=[sys.argv[0]] + unparsed)
