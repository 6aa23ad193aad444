"""A recurrent language model under a Supervisor: `python -m lm.train`."""
from __future__ import absolute_import
from __future__ import division
from __future__ import print_function

import numpy as np
import tensorflow.compat.v1 as tf

from . import reader

tf.disable_v2_behavior()

flags = tf.flags
logging = tf.logging

flags.DEFINE_string('save_path', None, 'Model output directory.')
flags.DEFINE_bool('use_fp16', False, 'Train using 16-bit floats.')
FLAGS = flags.FLAGS


class SmallConfig(object):
  """Small config."""
  init_scale = 0.1
  learning_rate = 1.0
  max_grad_norm = 5
  num_layers = 2
  num_steps = 6
  hidden_size = 8
  max_epoch = 1
  max_max_epoch = 2
  lr_decay = 0.5
  batch_size = 10
  vocab_size = 20


class PTBModel(object):
  """The model of one way of running: training or validation."""

  def __init__(self, is_training, config, words):
    self._batch_size = config.batch_size
    self.epoch_size = ((len(words) // config.batch_size) - 1) // config.num_steps
    self.num_steps = config.num_steps
    self.input_data, targets = reader.producer(
        words, config.batch_size, config.num_steps, name='Input')
    size = config.hidden_size

    cells = [
        tf.nn.rnn_cell.BasicLSTMCell(
            size, forget_bias=0.0, state_is_tuple=True,
            reuse=not is_training)
        for _ in range(config.num_layers)]
    cell = tf.nn.rnn_cell.MultiRNNCell(cells, state_is_tuple=True)
    self._initial_state = cell.zero_state(config.batch_size, tf.float32)

    with tf.device('/cpu:0'):
      embedding = tf.get_variable(
          'embedding', [config.vocab_size, size], dtype=tf.float32)
      inputs = tf.nn.embedding_lookup(embedding, self.input_data)

    state = self._initial_state
    outputs = []
    with tf.variable_scope('RNN'):
      for time_step in range(config.num_steps):
        if time_step > 0:
          tf.get_variable_scope().reuse_variables()
        (cell_output, state) = cell(inputs[:, time_step, :], state)
        outputs.append(cell_output)
    output = tf.reshape(tf.concat(outputs, 1), [-1, size])
    softmax_w = tf.get_variable('softmax_w', [size, config.vocab_size])
    softmax_b = tf.get_variable('softmax_b', [config.vocab_size])
    logits = tf.nn.xw_plus_b(output, softmax_w, softmax_b)
    loss = tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=tf.reshape(targets, [-1]), logits=logits)
    self.cost = tf.reduce_sum(loss) / config.batch_size
    self.final_state = state
    if not is_training:
      return

    self._lr = tf.Variable(0.0, trainable=False)
    tvars = tf.trainable_variables()
    grads, _ = tf.clip_by_global_norm(
        tf.gradients(self.cost, tvars), config.max_grad_norm)
    optimizer = tf.train.GradientDescentOptimizer(self._lr)
    self.train_op = optimizer.apply_gradients(
        zip(grads, tvars),
        global_step=tf.train.get_or_create_global_step())
    self._new_lr = tf.placeholder(tf.float32, shape=[], name='new_lr')
    self._lr_update = tf.assign(self._lr, self._new_lr)

  def assign_lr(self, session, lr_value):
    session.run(self._lr_update, feed_dict={self._new_lr: lr_value})

  @property
  def initial_state(self):
    return self._initial_state


def run_epoch(session, model, eval_op=None, verbose=False):
  """Runs the model on the given data."""
  costs = 0.0
  iters = 0
  state = session.run(model.initial_state)
  fetches = {'cost': model.cost, 'final_state': model.final_state}
  if eval_op is not None:
    fetches['eval_op'] = eval_op
  for step in range(model.epoch_size):
    feed_dict = {}
    for i, (c, h) in enumerate(model.initial_state):
      feed_dict[c] = state[i].c
      feed_dict[h] = state[i].h
    vals = session.run(fetches, feed_dict)
    state = vals['final_state']
    costs += vals['cost']
    iters += model.num_steps
    if verbose and step % 3 == 0:
      print('%.3f loss: %.7f' % (step / model.epoch_size, vals['cost']))
  return np.exp(costs / iters), costs / iters


def main(_):
  words = reader.raw_data()
  config = SmallConfig()
  with tf.Graph().as_default():
    initializer = tf.random_uniform_initializer(
        -config.init_scale, config.init_scale, seed=6)
    with tf.name_scope('Train'):
      with tf.variable_scope('Model', reuse=None, initializer=initializer):
        m = PTBModel(True, config, words[:400])
      tf.summary.scalar('Training_Loss', m.cost)
    with tf.name_scope('Valid'):
      with tf.variable_scope('Model', reuse=True, initializer=initializer):
        mvalid = PTBModel(False, config, words[400:])

    sv = tf.train.Supervisor(logdir=FLAGS.save_path)
    with sv.managed_session() as session:
      for i in range(config.max_max_epoch):
        lr_decay = config.lr_decay ** max(i + 1 - config.max_epoch, 0.0)
        m.assign_lr(session, config.learning_rate * lr_decay)
        _, loss = run_epoch(session, m, eval_op=m.train_op, verbose=True)
        print('Epoch: %d train_loss: %.7f' % (i + 1, loss))
        perplexity, loss = run_epoch(session, mvalid)
        print('Epoch: %d valid_loss: %.7f, perplexity %.2f' % (
            i + 1, loss, perplexity))
      if FLAGS.save_path:
        sv.saver.save(session, FLAGS.save_path, global_step=sv.global_step)


if __name__ == '__main__':
  tf.app.run()
