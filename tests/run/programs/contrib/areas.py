"""Uses each living area of tf.contrib; writes what came out, as JSON, into two files."""
from __future__ import print_function

import gzip
import json
import os
import struct
import sys
import tempfile

import numpy as np
import tensorflow as tf
from numbers_of import numbers
import tensorflow.contrib.slim as slim
from tensorflow.contrib.framework.python.ops import arg_scope, audio_ops
from tensorflow.contrib.learn.python.learn import basic_session_run_hooks as hooks
from tensorflow.contrib.learn.python.learn import monitored_session
from tensorflow.contrib.learn.python.learn.datasets import base
from tensorflow.contrib.learn.python.learn.datasets.mnist import read_data_sets
from tensorflow.contrib.learn.python.learn.session_run_hook import SessionRunHook
from tensorflow.contrib.learn.python.learn.summary_writer_cache import (
    SummaryWriterCache,
)
from tensorflow.contrib.training.python.training import hparam
from tensorflow.examples.tutorials.mnist import input_data

found = {}
ONES = tf.constant_initializer(0.1)
RNG = np.random.RandomState(1)
# Each graph runs once: no time goes into its optimization.
CONFIG = tf.ConfigProto()
CONFIG.graph_options.rewrite_options.disable_meta_optimizer = True


def part(function):
    with tf.Graph().as_default():
        result = function()
        if result is not None:
            with tf.Session(config=CONFIG) as session:
                session.run(
                    [
                        tf.global_variables_initializer(),
                        tf.local_variables_initializer(),
                        tf.tables_initializer(),
                    ]
                )
                found[function.__name__] = numbers(session.run(result))
    return function


SEQUENCE = RNG.rand(2, 4, 3).astype("float32")


@part
def slim_resnet():
    from tensorflow.contrib.slim.nets import resnet_v1
    from tensorflow.contrib.slim.python.slim.nets import resnet_utils

    with arg_scope(resnet_v1.resnet_arg_scope()):
        found["resnet"] = [resnet_v1.bottleneck.__name__, resnet_utils.Block.__name__]


@part
def framework():
    contrib = tf.contrib.framework
    a = contrib.model_variable("a", [2], initializer=ONES)
    names = [v.op.name for v in contrib.get_variables_to_restore()]
    found["framework_names"] = names
    nested = contrib.nest.map_structure(lambda v: v + 1, {"a": [1, 2]})
    return [a, tf.constant(nested["a"]), contrib.sort(tf.constant([3, 1, 2]))]


@part
def losses_and_metrics():
    a, b = tf.constant([1.0, 2.0, 3.0]), tf.constant([1.0, 4.0, 3.0])
    loss = tf.contrib.losses.mean_squared_error(a, b)
    names, updates = tf.contrib.metrics.aggregate_metric_map(
        {
            "mean": tf.contrib.metrics.streaming_mean(a),
            "accuracy": tf.contrib.metrics.streaming_accuracy(a, b),
        }
    )
    return [loss, updates, tf.contrib.metrics.accuracy(
        tf.constant([1, 2]), tf.constant([1, 3])
    )]


@part
def lookup():
    contrib = tf.contrib.lookup
    words = tf.constant(["b", "a", "x"])
    ids = contrib.index_table_from_tensor(tf.constant(["a", "b"]), default_value=7)
    oov = contrib.index_table_from_tensor(mapping=["a", "b"], num_oov_buckets=2)
    back = contrib.index_to_string_table_from_tensor(["a", "b"], default_value="?")
    path = os.path.join(tempfile.mkdtemp(), "words")
    with open(path, "w") as file:
        file.write("x\na\n")
    of_file = contrib.index_table_from_file(path, num_oov_buckets=1)
    init = contrib.KeyValueTensorInitializer(["k"], [5], tf.string, tf.int64)
    table = contrib.HashTable(init, -1)
    return [
        ids.lookup(words),
        oov.lookup(words),
        back.lookup(tf.constant([1, 5], tf.int64)),
        of_file.lookup(words),
        table.lookup(tf.constant(["k", "l"])),
    ]


@part
def rnn():
    rnn = tf.contrib.rnn
    x = tf.constant(SEQUENCE)
    major = tf.transpose(x, [1, 0, 2])
    lengths = tf.constant([4, 2])
    with tf.variable_scope("all", initializer=ONES):
        fused = rnn.LSTMBlockFusedCell(3)
        out, state = fused(major, dtype=tf.float32, sequence_length=lengths)
        back = rnn.TimeReversedFusedRNN(rnn.LSTMBlockFusedCell(2, name="back"))
        reverse, _ = back(major, dtype=tf.float32, sequence_length=lengths)
        cells = rnn.MultiRNNCell([rnn.LSTMBlockCell(2), rnn.BasicLSTMCell(2)])
        many, _ = tf.nn.dynamic_rnn(cells, x, lengths, dtype=tf.float32)
        gru, _ = rnn.static_rnn(rnn.GRUCell(2), tf.unstack(x, axis=1), dtype=tf.float32)
        both, _, _ = rnn.stack_bidirectional_dynamic_rnn(
            [rnn.GRUCell(2)], [rnn.GRUCell(2)], x, dtype=tf.float32
        )
    found["rnn_names"] = sorted(v.op.name for v in tf.global_variables())
    gradient = tf.gradients(out, fused.trainable_weights[0])
    return [out, state, reverse, many, gru[-1], both, gradient]


@part
def crf():
    crf = tf.contrib.crf
    x = tf.constant(SEQUENCE)
    tags = tf.constant([[0, 1, 2, 1], [2, 0, 0, 0]])
    lengths = tf.constant([4, 2])
    with tf.variable_scope("crf", initializer=tf.constant_initializer(
        RNG.rand(3, 3).astype("float32")
    )):
        likelihood, transitions = crf.crf_log_likelihood(x, tags, lengths)
    decoded = crf.crf_decode(x, transitions, lengths)
    one = crf.crf_decode(x[:, :1], transitions, tf.constant([1, 1]))
    gradient = tf.gradients(likelihood, transitions)
    loss = tf.contrib.seq2seq.sequence_loss(x, tags, tf.sequence_mask(lengths, 4, tf.float32))
    apart = tf.contrib.seq2seq.sequence_loss(
        x, tags, tf.sequence_mask(lengths, 4, tf.float32), average_across_batch=False
    )
    found["viterbi"] = numbers(crf.viterbi_decode(SEQUENCE[0], np.eye(3)))
    return [likelihood, decoded, one, gradient, loss, apart]


@part
def data():
    numbers_ = tf.data.Dataset.range(10)
    batches = numbers_.apply(tf.contrib.data.batch_and_drop_remainder(4))
    fused = numbers_.apply(tf.contrib.data.map_and_batch(lambda x: x * 2, 5))
    grouped = numbers_.apply(
        tf.contrib.data.group_by_window(lambda x: x % 2, lambda k, w: w.batch(5), 5)
    )
    parts = [d.make_one_shot_iterator() for d in (batches, fused, grouped)]
    return [i.get_next() for i in parts]


def hparams():
    params = tf.contrib.training.HParams(rate=0.1, units=[1, 2], on=True, name="a")
    params.parse("rate=0.5,units=[3,4],on=false,name=b")
    params.add_hparam("more", 1)
    params.set_hparam("more", 2)
    errors = []
    for text in ("rate=x", "what=1", "units[0]=3", "on=maybe", "rate=1,rate=2", "a b"):
        try:
            params.parse(text)
            errors.append("none")
        except Exception as e:
            errors.append(type(e).__name__)
    for value in (1.5, "3", True, [1]):
        try:
            params.set_hparam("more", value)
            errors.append(params.more)
        except Exception as e:
            errors.append(type(e).__name__)
    found["hparams"] = [
        json.loads(params.to_json()),
        params.get("rate"),
        params.get("none", 3),
        "rate" in params,
        errors,
        hparam.HParams is tf.contrib.training.HParams,
    ]


def mnist():
    folder = tempfile.mkdtemp()
    for name, count in (("train", 30), ("t10k", 5)):
        images = RNG.randint(0, 255, (count, 28, 28)).astype("uint8")
        with gzip.open(os.path.join(folder, name + "-images-idx3-ubyte.gz"), "wb") as f:
            f.write(struct.pack(">IIII", 2051, count, 28, 28) + images.tobytes())
        labels = RNG.randint(0, 10, count).astype("uint8")
        with gzip.open(os.path.join(folder, name + "-labels-idx1-ubyte.gz"), "wb") as f:
            f.write(struct.pack(">II", 2049, count) + labels.tobytes())
    sets = input_data.read_data_sets(folder, one_hot=True, validation_size=6, seed=5)
    sums = [float(sets.train.next_batch(10)[0].sum()) for _ in range(6)]
    labels = sets.train.next_batch(3)[1]
    shapes = [sets.train.images.shape, sets.validation.num_examples, labels.shape]
    found["mnist"] = numbers([sums, labels, sets.train.epochs_completed]) + [
        [list(s) if isinstance(s, tuple) else s for s in shapes]
    ]


def lazy_adam():
    with tf.Graph().as_default(), tf.Session() as session:
        tables = [
            tf.get_variable("old", [4, 2], initializer=ONES),
            tf.get_variable("new", [4, 2], initializer=ONES, use_resource=True),
        ]
        rows = tf.placeholder(tf.int32, [None])
        looked = [tf.nn.embedding_lookup(table, rows) for table in tables]
        loss = tf.add_n([tf.reduce_sum(tf.square(x - 0.5)) for x in looked])
        train_op = tf.contrib.opt.LazyAdamOptimizer(0.05).minimize(loss)
        session.run(tf.global_variables_initializer())
        for step in ([0, 2, 0], [1], [0, 1]):
            session.run(train_op, {rows: step})
        found["lazy_adam"] = numbers(session.run(tables))


def moving_average():
    folder = tempfile.mkdtemp()
    kinds = {"resource": True, "reference": False, "at_once": True}
    for name, resource in kinds.items():
        with tf.Graph().as_default(), tf.Session() as session:
            tf.set_random_seed(1)
            step = tf.train.get_or_create_global_step()
            parts = tf.get_variable(
                "parts",
                [4, 2],
                initializer=ONES,
                partitioner=tf.fixed_size_partitioner(2),
                use_resource=resource,
            )
            one = tf.get_variable("one", [2], initializer=ONES, use_resource=resource)
            tf.get_variable("other", [2], initializer=ONES, trainable=False)
            loss = tf.reduce_sum(tf.square(tf.convert_to_tensor(parts) * one - 3.0))
            inner = tf.train.MomentumOptimizer(0.02, 0.9)
            optimizer = tf.contrib.opt.MovingAverageOptimizer(
                inner,
                average_decay=0.6,
                num_updates=None if resource else step,
                sequential_update=name != "at_once",
            )
            try:
                optimizer.swapping_saver()
            except RuntimeError as e:
                early = str(e)
            train_op = optimizer.minimize(loss, global_step=step)
            saver = optimizer.swapping_saver(max_to_keep=1)
            try:
                optimizer.swapping_saver([one])
            except ValueError as e:
                missing = str(e)[:50]
            session.run(tf.global_variables_initializer())
            losses = [session.run([loss, train_op])[0] for _ in range(4)]
            if name == "at_once":  # the averages and the updates race, by intention
                found["moving_average_" + name] = numbers(losses)
                continue
            path = saver.save(session, os.path.join(folder, name))
            reader = tf.train.NewCheckpointReader(path)
            names = sorted(reader.get_variable_to_shape_map())
            values = numbers([reader.get_tensor(n) for n in names])
            found["moving_average_" + name] = [
                numbers(losses),
                early,
                missing,
                names,
                values,
            ]


@part
def audio():
    tone = tf.sin(tf.range(1600, dtype=tf.float32) / 20)[:, None]
    wave = audio_ops.decode_wav(audio_ops.encode_wav(tone, 16000))
    spectrogram = audio_ops.audio_spectrogram(wave.audio, window_size=480, stride=400)
    return [tf.reduce_max(spectrogram, 2), audio_ops.mfcc(spectrogram, 16000)]


def files_of_learn():
    folder = tempfile.mkdtemp()
    table = os.path.join(folder, "table.csv")
    with open(table, "w") as f:
        f.write("3,2,a,b\n1.5,2,1\n4,5,0\n6,7,2\n")
    base.shrink_csv(table, 2)
    kinds = {"target_dtype": int, "features_dtype": "float32"}
    small = table.replace(".", "_small.")
    rows = tf.contrib.learn.datasets.base.load_csv_with_header(table, **kinds)
    bare = os.path.join(folder, "bare.csv")
    with open(table) as f, open(bare, "w") as g:
        g.writelines(f.readlines()[1:])
    made = os.path.join(folder, "made")
    again = [base.maybe_download("a.csv", made, "file:" + small) for _ in range(2)]
    found["files_of_learn"] = [
        numbers(base.load_csv_without_header(bare, int, "float32", target_column=1)),
        numbers(rows),
        [open(name).read() for name in again],
        list(base.Datasets(1, 2, 3)._fields + base.Dataset._fields),
        issubclass(hooks.StopAtStepHook, tf.train.StopAtStepHook),
        monitored_session.MonitoredSession is tf.train.MonitoredSession,
        SessionRunHook is tf.train.SessionRunHook,
        SummaryWriterCache is tf.summary.FileWriterCache,
        read_data_sets.__name__,
    ]


def rest():
    cluster = tf.train.ClusterSpec({"worker": ["a:1"]})
    resolver = tf.contrib.cluster_resolver.SimpleClusterResolver(cluster)
    config = tf.contrib.learn.RunConfig(save_checkpoints_steps=4)
    found["run_config"] = [config.save_checkpoints_secs, config.uid() == config.uid()]
    strategy = tf.contrib.distribute.OneDeviceStrategy("/cpu:0")
    found["rest"] = [
        resolver.cluster_spec().as_dict(),
        strategy.num_replicas_in_sync,
        tf.contrib.learn.ModeKeys.TRAIN,
    ]


for function in (hparams, mnist, lazy_adam, moving_average, files_of_learn, rest):
    function()
json.dump(found, open(sys.argv[1], "w"), indent=1, sort_keys=True)
import seq2seq  # writes the other file
