"""Distributed training with model replicas, synchronous if asked.

One process for each parameter server and worker:
  --job_name=ps --task_index=0 --ps_hosts=... --worker_hosts=...
"""
import math
import tempfile
import time

import numpy as np
import tensorflow as tf

flags = tf.app.flags
flags.DEFINE_integer('task_index', None, 'Worker task index')
flags.DEFINE_integer('hidden_units', 12, 'Units in the hidden layer of the NN')
flags.DEFINE_integer('train_steps', 12, 'Number of (global) training steps')
flags.DEFINE_integer('batch_size', 40, 'Training batch size')
flags.DEFINE_float('learning_rate', 0.02, 'Learning rate')
flags.DEFINE_boolean('sync_replicas', False, 'Use synchronized replicas')
flags.DEFINE_string('ps_hosts', 'localhost:2222', 'hostname:port pairs')
flags.DEFINE_string('worker_hosts', 'localhost:2223', 'hostname:port pairs')
flags.DEFINE_string('job_name', None, 'job name: worker or ps')

FLAGS = flags.FLAGS

IMAGE_PIXELS = 8


def next_batch():
  """All examples: workers then have equal gradients, whoever is first."""
  random = np.random.RandomState(5)
  labels = random.randint(0, 10, FLAGS.batch_size)
  images = random.rand(FLAGS.batch_size, IMAGE_PIXELS * IMAGE_PIXELS)
  images[np.arange(FLAGS.batch_size), 3 * labels] += 1.
  return images, np.eye(10)[labels]


def main(unused_argv):
  print('job name = %s' % FLAGS.job_name)
  print('task index = %d' % FLAGS.task_index)

  # Construct the cluster and start the server
  ps_spec = FLAGS.ps_hosts.split(',')
  worker_spec = FLAGS.worker_hosts.split(',')
  num_workers = len(worker_spec)
  cluster = tf.train.ClusterSpec({'ps': ps_spec, 'worker': worker_spec})

  server = tf.train.Server(
      cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
  if FLAGS.job_name == 'ps':
    server.join()

  is_chief = (FLAGS.task_index == 0)
  worker_device = '/job:worker/task:%d/cpu:0' % FLAGS.task_index
  # The device setter will automatically place Variables ops on separate
  # parameter servers (ps). The non-Variable ops will be placed on the workers.
  with tf.device(
      tf.train.replica_device_setter(
          worker_device=worker_device,
          ps_device='/job:ps/cpu:0',
          cluster=cluster)):
    global_step = tf.Variable(0, name='global_step', trainable=False)
    tf.add_to_collection(tf.GraphKeys.GLOBAL_STEP, global_step)

    hid_w = tf.Variable(
        tf.truncated_normal(
            [IMAGE_PIXELS * IMAGE_PIXELS, FLAGS.hidden_units],
            stddev=1.0 / IMAGE_PIXELS, seed=1),
        name='hid_w')
    hid_b = tf.Variable(tf.zeros([FLAGS.hidden_units]), name='hid_b')
    sm_w = tf.Variable(
        tf.truncated_normal(
            [FLAGS.hidden_units, 10],
            stddev=1.0 / math.sqrt(FLAGS.hidden_units), seed=2),
        name='sm_w')
    sm_b = tf.Variable(tf.zeros([10]), name='sm_b')

    x = tf.placeholder(tf.float32, [None, IMAGE_PIXELS * IMAGE_PIXELS])
    y_ = tf.placeholder(tf.float32, [None, 10])
    hid = tf.nn.relu(tf.nn.xw_plus_b(x, hid_w, hid_b))
    y = tf.nn.softmax(tf.nn.xw_plus_b(hid, sm_w, sm_b))
    cross_entropy = -tf.reduce_mean(
        tf.reduce_sum(y_ * tf.log(tf.clip_by_value(y, 1e-10, 1.0)), 1))

    opt = tf.train.AdamOptimizer(FLAGS.learning_rate)
    hooks = [tf.train.StopAtStepHook(last_step=FLAGS.train_steps)]
    if FLAGS.sync_replicas:
      opt = tf.train.SyncReplicasOptimizer(
          opt, replicas_to_aggregate=num_workers,
          total_num_replicas=num_workers, name='mnist_sync_replicas')
    train_step = opt.minimize(cross_entropy, global_step=global_step)
    if FLAGS.sync_replicas:
      hooks.append(opt.make_session_run_hook(is_chief))

    sess_config = tf.ConfigProto(
        allow_soft_placement=True,
        device_filters=['/job:ps',
                        '/job:worker/task:%d' % FLAGS.task_index])

    with tf.train.MonitoredTrainingSession(
        master=server.target,
        is_chief=is_chief,
        checkpoint_dir=tempfile.mkdtemp() if is_chief else None,
        hooks=hooks,
        config=sess_config,
        stop_grace_period_secs=5) as sess:
      time_begin = time.time()
      local_step = 0
      while not sess.should_stop():
        batch_xs, batch_ys = next_batch()
        _, loss, step = sess.run([train_step, cross_entropy, global_step],
                                 feed_dict={x: batch_xs, y_: batch_ys})
        local_step += 1
        print('Worker %d: training step %d done (global step: %d), loss: %.7f' %
              (FLAGS.task_index, local_step, step, loss))
      print('Training elapsed time: %f s' % (time.time() - time_begin))


if __name__ == '__main__':
  tf.app.run()
