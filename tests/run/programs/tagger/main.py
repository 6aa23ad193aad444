"""Named entities with a bidirectional LSTM and a CRF, as an Estimator."""
from __future__ import print_function

import functools
import logging
import os
import sys

import numpy as np
import tensorflow as tf

DATADIR = sys.argv[1] if len(sys.argv) > 1 else 'data'

# Logging
tf.logging.set_verbosity(logging.INFO)
logging.getLogger('tensorflow').handlers = [logging.StreamHandler(sys.stdout)]

WORDS = ['the', 'cat', 'Paris', 'met', 'John', 'in', 'Rome', 'and', 'Mary']
TAGS = ['O', 'B-PER', 'B-LOC']


def write_data():
    for name, lines in (('words', WORDS), ('tags', TAGS)):
        with open(os.path.join(DATADIR, 'vocab.%s.txt' % name), 'w') as f:
            f.write('\n'.join(lines) + '\n')


def generator_fn(count, seed):
    random = np.random.RandomState(seed)
    for _ in range(count):
        words = [WORDS[i] for i in random.randint(0, 9, random.randint(3, 9))]
        tags = ['B-PER' if w in ('John', 'Mary') else
                'B-LOC' if w in ('Paris', 'Rome') else 'O' for w in words]
        yield ([w.encode() for w in words], len(words)), [
            t.encode() for t in tags]


def input_fn(count, seed, params=None):
    shapes = (([None], ()), [None])
    types = ((tf.string, tf.int32), tf.string)
    defaults = (('<pad>', 0), 'O')

    dataset = tf.data.Dataset.from_generator(
        functools.partial(generator_fn, count, seed),
        output_shapes=shapes, output_types=types)
    if params is not None:
        dataset = dataset.shuffle(
            params['buffer'], seed=21, reshuffle_each_iteration=False)
    return dataset.padded_batch(10, shapes, defaults).prefetch(1)


def model_fn(features, labels, mode, params):
    # Read vocabs and inputs
    words, nwords = features
    training = (mode == tf.estimator.ModeKeys.TRAIN)
    vocab_words = tf.contrib.lookup.index_table_from_file(
        params['words'], num_oov_buckets=1)
    num_tags = len(TAGS)

    # Word Embeddings
    word_ids = vocab_words.lookup(words)
    table = np.random.RandomState(4).randn(len(WORDS) + 1, params['dim'])
    variable = tf.get_variable(
        'glove', initializer=tf.constant(table, tf.float32), trainable=False)
    embeddings = tf.nn.embedding_lookup(variable, word_ids)
    embeddings = tf.layers.dropout(embeddings, rate=0.0, training=training)

    # LSTM
    t = tf.transpose(embeddings, perm=[1, 0, 2])
    init = tf.orthogonal_initializer
    lstm_cell_fw = tf.contrib.rnn.LSTMCell(
        params['lstm_size'], initializer=init(seed=1))
    lstm_cell_bw = tf.nn.rnn_cell.LSTMCell(
        params['lstm_size'], initializer=init(seed=2))
    outputs, _ = tf.nn.bidirectional_dynamic_rnn(
        lstm_cell_fw, lstm_cell_bw, t, dtype=tf.float32,
        sequence_length=nwords, time_major=True)
    output = tf.transpose(tf.concat(outputs, axis=-1), perm=[1, 0, 2])

    # CRF
    logits = tf.layers.dense(
        output, num_tags, kernel_initializer=tf.glorot_uniform_initializer(3))
    transitions = tf.get_variable(
        'transitions', [num_tags, num_tags],
        initializer=tf.random_uniform_initializer(-.1, .1, seed=17))
    pred_ids, _ = tf.contrib.crf.crf_decode(logits, transitions, nwords)

    if mode == tf.estimator.ModeKeys.PREDICT:
        reverse_vocab_tags = tf.contrib.lookup.index_to_string_table_from_file(
            params['tags'])
        return tf.estimator.EstimatorSpec(mode, predictions={
            'tags': reverse_vocab_tags.lookup(tf.to_int64(pred_ids))})

    # Loss
    vocab_tags = tf.contrib.lookup.index_table_from_file(params['tags'])
    tags = tf.to_int32(vocab_tags.lookup(labels))
    log_likelihood, _ = tf.contrib.crf.crf_log_likelihood(
        logits, tags, nwords, transitions)
    loss = tf.reduce_mean(-log_likelihood)

    # Metrics
    weights = tf.sequence_mask(nwords)
    metrics = {'acc': tf.metrics.accuracy(tags, pred_ids, weights)}
    tf.summary.scalar('acc', metrics['acc'][1])

    if mode == tf.estimator.ModeKeys.EVAL:
        return tf.estimator.EstimatorSpec(
            mode, loss=loss, eval_metric_ops=metrics)
    train_op = tf.train.AdamOptimizer(0.05).minimize(
        loss, global_step=tf.train.get_or_create_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


if __name__ == '__main__':
    if not os.path.isdir(DATADIR):
        os.makedirs(DATADIR)
    write_data()
    params = {
        'dim': 6,
        'buffer': 60,
        'lstm_size': 5,
        'words': os.path.join(DATADIR, 'vocab.words.txt'),
        'tags': os.path.join(DATADIR, 'vocab.tags.txt'),
    }

    # Estimator, train and evaluate
    cfg = tf.estimator.RunConfig(save_checkpoints_steps=6,
                                 log_step_count_steps=3)
    estimator = tf.estimator.Estimator(
        model_fn, os.path.join(DATADIR, 'model'), cfg, params)
    hook = tf.estimator.experimental.stop_if_no_increase_hook(
        estimator, 'acc', 500, min_steps=8000, run_every_secs=120)
    train_spec = tf.estimator.TrainSpec(
        input_fn=functools.partial(input_fn, 60, 1, params), hooks=[hook])
    eval_spec = tf.estimator.EvalSpec(
        input_fn=functools.partial(input_fn, 30, 2), throttle_secs=0)
    tf.estimator.train_and_evaluate(estimator, train_spec, eval_spec)

    preds = estimator.predict(functools.partial(input_fn, 6, 5))
    print('tags', [b' '.join(pred['tags']).decode() for pred in preds])
