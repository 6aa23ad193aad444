"""A linear-chain conditional random field over recurrent cells."""
import numpy as np
import tensorflow as tf


class CrfForwardRnnCell(tf.nn.rnn_cell.RNNCell):
  """Computes the alpha values of a linear-chain CRF, a step at a time."""

  def __init__(self, transition_params):
    self._transition_params = tf.expand_dims(transition_params, 0)
    self._num_tags = transition_params.get_shape()[0].value

  @property
  def state_size(self):
    return self._num_tags

  @property
  def output_size(self):
    return self._num_tags

  def __call__(self, inputs, state, scope=None):
    state = tf.expand_dims(state, 2)
    transition_scores = state + self._transition_params
    new_alphas = inputs + tf.reduce_logsumexp(transition_scores, [1])
    return new_alphas, new_alphas


def sequence_score(inputs, tags, lengths, transitions):
  """The unnormalised score of a sequence of tags."""
  num_tags = inputs.get_shape()[2].value
  mask = tf.sequence_mask(lengths, tf.shape(inputs)[1], dtype=tf.float32)
  unary = tf.reduce_sum(
      inputs * tf.one_hot(tags, num_tags, dtype=tf.float32), axis=2)
  flat = tags[:, :-1] * num_tags + tags[:, 1:]
  binary = tf.gather(tf.reshape(transitions, [-1]), flat)
  return (tf.reduce_sum(unary * mask, 1) +
          tf.reduce_sum(binary * mask[:, 1:], 1))


def log_norm(inputs, lengths, transitions):
  """The normalisation of the CRF."""
  first_input = tf.squeeze(tf.slice(inputs, [0, 0, 0], [-1, 1, -1]), [1])
  rest = tf.slice(inputs, [0, 1, 0], [-1, -1, -1])
  _, alphas = tf.nn.dynamic_rnn(
      cell=CrfForwardRnnCell(transitions), inputs=rest,
      sequence_length=tf.maximum(lengths - 1, 0),
      initial_state=first_input, dtype=tf.float32)
  return tf.reduce_logsumexp(alphas, [1])


def crf_log_likelihood(inputs, tags, lengths):
  num_tags = inputs.get_shape()[2].value
  transitions = tf.get_variable(
      'transitions', [num_tags, num_tags],
      initializer=tf.random_uniform_initializer(-.1, .1, seed=17))
  scores = sequence_score(inputs, tags, lengths, transitions)
  return scores - log_norm(inputs, lengths, transitions), transitions


def viterbi_decode(score, transition_params):
  """Decode the highest scoring sequence of tags outside of TensorFlow."""
  trellis = np.zeros_like(score)
  backpointers = np.zeros_like(score, dtype=np.int32)
  trellis[0] = score[0]
  for t in range(1, score.shape[0]):
    v = np.expand_dims(trellis[t - 1], 1) + transition_params
    trellis[t] = score[t] + np.max(v, 0)
    backpointers[t] = np.argmax(v, 0)
  viterbi = [np.argmax(trellis[-1])]
  for bp in reversed(backpointers[1:]):
    viterbi.append(bp[viterbi[-1]])
  viterbi.reverse()
  return viterbi, np.max(trellis[-1])
