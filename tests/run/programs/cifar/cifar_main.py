"""CIFAR-like pictures on hand-made towers whose gradients are averaged."""
import argparse
import functools
import itertools

import cifar_data
import cifar_utils
import numpy as np
import six
from six.moves import xrange  # pylint: disable=redefined-builtin
import tensorflow as tf

tf.logging.set_verbosity(tf.logging.INFO)


def _network(images, weight_decay):
  x = tf.layers.conv2d(
      images, 4, 3, padding='same', use_bias=False, name='conv',
      kernel_initializer=tf.truncated_normal_initializer(stddev=.1, seed=1))
  x = tf.contrib.layers.batch_norm(
      x, decay=0.9, center=True, scale=True, epsilon=1e-5, is_training=True,
      fused=True, data_format='NHWC', updates_collections='batch_updates',
      scope='norm')
  x = tf.nn.relu(x)
  x = tf.reduce_mean(x, [1])
  x = tf.reshape(x, [-1, int(np.prod([d.value for d in x.shape[1:]]))])
  logits = tf.layers.dense(
      x, 10, name='logits',
      kernel_initializer=tf.random_normal_initializer(stddev=.1, seed=2))
  decay = weight_decay * tf.add_n(
      [tf.nn.l2_loss(v) for v in tf.trainable_variables()])
  return logits, decay


def _tower_fn(weight_decay, feature, label):
  """Build computation tower: loss, gradients and predictions."""
  logits, decay = _network(feature, weight_decay)
  tower_pred = tf.argmax(input=logits, axis=1)
  tower_loss = tf.losses.sparse_softmax_cross_entropy(
      logits=logits, labels=label)
  tower_loss = tf.reduce_mean(tower_loss) + decay
  model_params = tf.trainable_variables()
  tower_grad = tf.gradients(tower_loss, model_params)
  return tower_loss, zip(tower_grad, model_params), tower_pred


def get_model_fn(num_gpus, num_workers):
  """Returns a function that will build the model."""

  def _model_fn(features, labels, mode, params):
    tower_losses = []
    tower_gradvars = []
    tower_preds = []
    for i in range(num_gpus):
      device_setter = cifar_utils.local_device_setter(
          worker_device='/{}:{}'.format('cpu', i))
      with tf.variable_scope('resnet', reuse=bool(i != 0)):
        with tf.name_scope('tower_%d' % i) as name_scope:
          with tf.device(device_setter):
            loss, gradvars, preds = _tower_fn(
                params.weight_decay, features[i], labels[i])
            tower_losses.append(loss)
            tower_gradvars.append(gradvars)
            tower_preds.append(preds)
            if i == 0:
              # Only trigger batch_norm moving mean and variance update from
              # the 1st tower.
              update_ops = tf.get_collection('batch_updates', name_scope)

    # Now compute global loss and gradients.
    gradvars = []
    with tf.name_scope('gradient_averaging'):
      all_grads = {}
      for grad, var in itertools.chain(*tower_gradvars):
        if grad is not None:
          all_grads.setdefault(var, []).append(grad)
      for var, grads in six.iteritems(all_grads):
        # Average gradients on the same device as the variables
        with tf.device(var.device):
          avg_grad = tf.multiply(tf.add_n(grads), 1. / len(grads))
        gradvars.append((avg_grad, var))

    with tf.device('/cpu:0'):
      num_batches_per_epoch = 96 // (params.train_batch_size * num_workers)
      boundaries = [
          num_batches_per_epoch * x for x in np.array([2, 4], dtype=np.int64)]
      staged_lr = [params.learning_rate * x for x in [1, 0.1, 0.01]]
      learning_rate = tf.train.piecewise_constant(
          tf.train.get_global_step(), boundaries, staged_lr)
      loss = tf.reduce_mean(tower_losses, name='loss')

      examples_sec_hook = cifar_utils.ExamplesPerSecondHook(
          params.train_batch_size, every_n_steps=4)
      tensors_to_log = {'learning_rate': learning_rate, 'loss': loss}
      logging_hook = tf.train.LoggingTensorHook(
          tensors=tensors_to_log, every_n_iter=1)
      train_hooks = [logging_hook, examples_sec_hook]

      optimizer = tf.train.MomentumOptimizer(
          learning_rate=learning_rate, momentum=params.momentum)

      # Create single grouped train op
      train_op = tf.group(
          optimizer.apply_gradients(
              gradvars, global_step=tf.train.get_global_step()), *update_ops)

      predictions = {'classes': tf.concat(tower_preds, axis=0)}
      metrics = {'accuracy': tf.metrics.accuracy(
          tf.concat(labels, axis=0), predictions['classes'])}

    return tf.estimator.EstimatorSpec(
        mode=mode,
        predictions=predictions,
        loss=loss,
        train_op=train_op,
        training_hooks=train_hooks,
        eval_metric_ops=metrics)

  return _model_fn


def input_fn(data_dir, subset, num_shards, batch_size):
  """Creates the batch and splits it over the towers."""
  with tf.device('/cpu:0'):
    dataset = cifar_data.Cifar10DataSet(data_dir, subset)
    image_batch, label_batch = dataset.make_batch(batch_size)
    image_batch = tf.unstack(image_batch, num=batch_size, axis=0)
    label_batch = tf.unstack(label_batch, num=batch_size, axis=0)
    feature_shards = [[] for i in range(num_shards)]
    label_shards = [[] for i in range(num_shards)]
    for i in xrange(batch_size):
      idx = i % num_shards
      feature_shards[idx].append(image_batch[i])
      label_shards[idx].append(label_batch[i])
    feature_shards = [tf.parallel_stack(x) for x in feature_shards]
    label_shards = [tf.parallel_stack(x) for x in label_shards]
    return feature_shards, label_shards


def main(job_dir, data_dir, num_gpus, **hparams):
  cifar_data.generate(data_dir)

  sess_config = tf.ConfigProto(
      allow_soft_placement=True,
      intra_op_parallelism_threads=1,
      device_count={'CPU': num_gpus},
      gpu_options=tf.GPUOptions(force_gpu_compatible=True))
  config = cifar_utils.RunConfig(session_config=sess_config, model_dir=job_dir)
  hparams = tf.contrib.training.HParams(is_chief=config.is_chief, **hparams)
  tf.logging.info('uid has %d characters', len(config.uid()))

  train_input_fn = functools.partial(
      input_fn, data_dir, subset='train', num_shards=num_gpus,
      batch_size=hparams.train_batch_size)
  eval_input_fn = functools.partial(
      input_fn, data_dir, subset='eval', num_shards=num_gpus,
      batch_size=hparams.eval_batch_size)
  classifier = tf.estimator.Estimator(
      model_fn=get_model_fn(num_gpus, config.num_worker_replicas or 1),
      config=config,
      params=hparams)
  classifier.train(train_input_fn, max_steps=hparams.train_steps)
  classifier.evaluate(eval_input_fn, steps=2)


if __name__ == '__main__':
  parser = argparse.ArgumentParser()
  parser.add_argument('--data-dir', type=str, required=True)
  parser.add_argument('--job-dir', type=str, required=True)
  parser.add_argument('--num-gpus', type=int, default=2)
  parser.add_argument('--train-steps', type=int, default=10)
  parser.add_argument('--train-batch-size', type=int, default=16)
  parser.add_argument('--eval-batch-size', type=int, default=16)
  parser.add_argument('--momentum', type=float, default=0.9)
  parser.add_argument('--weight-decay', type=float, default=2e-4)
  parser.add_argument('--learning-rate', type=float, default=0.1)
  main(**vars(parser.parse_args()))
