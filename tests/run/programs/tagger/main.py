"""Named entities with a bidirectional LSTM and a CRF, as an Estimator."""
from __future__ import print_function

import functools
import json
import logging
import os
import sys

import numpy as np
import tensorflow as tf

DATADIR = sys.argv[1] if len(sys.argv) > 1 else 'data'
RESULTS = os.path.join(DATADIR, 'results')

if not os.path.isdir(RESULTS):
    os.makedirs(RESULTS)

# Logging
tf.logging.set_verbosity(logging.INFO)
handlers = [
    logging.FileHandler(os.path.join(RESULTS, 'main.log')),
    logging.StreamHandler(sys.stdout)
]
logging.getLogger('tensorflow').handlers = handlers

WORDS = ['the', 'cat', 'Paris', 'met', 'John', 'in', 'Rome', 'and', 'Mary']
TAGS = ['O', 'B-PER', 'B-LOC']


def write_data():
    with open(os.path.join(DATADIR, 'vocab.words.txt'), 'w') as f:
        f.write('\n'.join(WORDS) + '\n')
    with open(os.path.join(DATADIR, 'vocab.tags.txt'), 'w') as f:
        f.write('\n'.join(TAGS) + '\n')


def generator_fn(count, seed):
    random = np.random.RandomState(seed)
    for _ in range(count):
        words = [WORDS[i] for i in random.randint(0, 9, random.randint(3, 9))]
        tags = ['B-PER' if w in ('John', 'Mary') else
                'B-LOC' if w in ('Paris', 'Rome') else 'O' for w in words]
        yield ([w.encode() for w in words], len(words)), [
            t.encode() for t in tags]


def input_fn(count, seed, params=None, shuffle_and_repeat=False):
    params = params if params is not None else {}
    shapes = (([None], ()), [None])
    types = ((tf.string, tf.int32), tf.string)
    defaults = (('<pad>', 0), 'O')

    dataset = tf.data.Dataset.from_generator(
        functools.partial(generator_fn, count, seed),
        output_shapes=shapes, output_types=types)
    if shuffle_and_repeat:
        dataset = dataset.shuffle(
            params['buffer'], seed=21,
            reshuffle_each_iteration=False).repeat(params['epochs'])
    return (dataset
            .padded_batch(params.get('batch_size', 10), shapes, defaults)
            .prefetch(1))


def model_fn(features, labels, mode, params):
    # Read vocabs and inputs
    dropout = params['dropout']
    words, nwords = features
    training = (mode == tf.estimator.ModeKeys.TRAIN)
    vocab_words = tf.contrib.lookup.index_table_from_file(
        params['words'], num_oov_buckets=params['num_oov_buckets'])
    with open(params['tags']) as f:
        indices = [idx for idx, tag in enumerate(f) if tag.strip() != 'O']
        num_tags = len(indices) + 1

    # Word Embeddings
    word_ids = vocab_words.lookup(words)
    table = np.random.RandomState(4).randn(
        len(WORDS) + params['num_oov_buckets'], params['dim'])
    variable = tf.get_variable(
        'glove', initializer=tf.constant(table, tf.float32), trainable=False)
    embeddings = tf.nn.embedding_lookup(variable, word_ids)
    embeddings = tf.layers.dropout(embeddings, rate=dropout,
                                   training=training)

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
    output = tf.concat(outputs, axis=-1)
    output = tf.transpose(output, perm=[1, 0, 2])

    # CRF
    logits = tf.layers.dense(
        output, num_tags, kernel_initializer=tf.glorot_uniform_initializer(3))

    if mode == tf.estimator.ModeKeys.PREDICT:
        with tf.variable_scope('', reuse=tf.AUTO_REUSE):
            transitions = tf.get_variable('transitions', [num_tags, num_tags])
        reverse_vocab_tags = tf.contrib.lookup.index_to_string_table_from_file(
            params['tags'])
        pred_strings = reverse_vocab_tags.lookup(
            tf.to_int64(tf.argmax(logits, -1)))
        return tf.estimator.EstimatorSpec(mode, predictions={
            'logits': logits,
            'tags': pred_strings,
            'nwords': nwords,
            'transitions': tf.tile(transitions[None],
                                   [tf.shape(logits)[0], 1, 1]),
        })

    # Loss
    vocab_tags = tf.contrib.lookup.index_table_from_file(params['tags'])
    tags = tf.to_int32(vocab_tags.lookup(labels))
    transitions = tf.get_variable(
        'transitions', [num_tags, num_tags],
        initializer=tf.random_uniform_initializer(-.1, .1, seed=17))
    log_likelihood, _ = tf.contrib.crf.crf_log_likelihood(
        logits, tags, nwords, transitions)
    loss = tf.reduce_mean(-log_likelihood)

    # Metrics
    weights = tf.sequence_mask(nwords)
    pred_ids = tf.to_int32(tf.argmax(logits, -1))
    metrics = {
        'acc': tf.metrics.accuracy(tags, pred_ids, weights),
        'hit': tf.metrics.recall(tf.greater(tags, 0), tf.greater(pred_ids, 0),
                                 weights),
    }
    for metric_name, op in metrics.items():
        tf.summary.scalar(metric_name, op[1])

    if mode == tf.estimator.ModeKeys.EVAL:
        return tf.estimator.EstimatorSpec(
            mode, loss=loss, eval_metric_ops=metrics)

    elif mode == tf.estimator.ModeKeys.TRAIN:
        train_op = tf.train.AdamOptimizer(0.05).minimize(
            loss, global_step=tf.train.get_or_create_global_step())
        return tf.estimator.EstimatorSpec(
            mode, loss=loss, train_op=train_op)


if __name__ == '__main__':
    write_data()
    # Params
    params = {
        'dim': 6,
        'dropout': 0.0,
        'num_oov_buckets': 1,
        'epochs': 3,
        'batch_size': 10,
        'buffer': 60,
        'lstm_size': 5,
        'words': os.path.join(DATADIR, 'vocab.words.txt'),
        'tags': os.path.join(DATADIR, 'vocab.tags.txt'),
    }
    with open(os.path.join(RESULTS, 'params.json'), 'w') as f:
        json.dump(params, f, indent=4, sort_keys=True)

    # Estimator, train and evaluate
    train_inpf = functools.partial(input_fn, 60, 1, params,
                                   shuffle_and_repeat=True)
    eval_inpf = functools.partial(input_fn, 30, 2)

    cfg = tf.estimator.RunConfig(save_checkpoints_steps=6,
                                 log_step_count_steps=3)
    estimator = tf.estimator.Estimator(
        model_fn, os.path.join(RESULTS, 'model'), cfg, params)
    hook = tf.estimator.experimental.stop_if_no_increase_hook(
        estimator, 'acc', 500, min_steps=8000, run_every_secs=120)
    train_spec = tf.estimator.TrainSpec(input_fn=train_inpf, hooks=[hook])
    eval_spec = tf.estimator.EvalSpec(input_fn=eval_inpf, throttle_secs=0)
    tf.estimator.train_and_evaluate(estimator, train_spec, eval_spec)

    # Write predictions to file
    golds = generator_fn(6, 5)
    preds = estimator.predict(functools.partial(input_fn, 6, 5))
    with open(os.path.join(RESULTS, 'score.txt'), 'wb') as f:
        for gold, pred in zip(golds, preds):
            ((words, n), tags) = gold
            path, _ = tf.contrib.crf.viterbi_decode(
                pred['logits'][:n], pred['transitions'])
            for word, tag, tag_pred in zip(words, tags, path):
                f.write(b' '.join([word, tag, TAGS[tag_pred].encode()]) +
                        b'\n')
            f.write(b'\n')
