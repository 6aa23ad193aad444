"""Uses tf.contrib.seq2seq; writes what came out, and the variables, as JSON."""
import json
import sys

import numpy as np
import tensorflow as tf
from numbers_of import numbers

s2s = tf.contrib.seq2seq
RNG = np.random.RandomState(1)
INPUTS = RNG.rand(3, 5, 4).astype("float32")
LENGTHS = np.array([5, 3, 0], "int32")
MEMORY = RNG.rand(3, 6, 4).astype("float32")
MEMORY_LENGTHS = np.array([6, 4, 2], "int32")
EMBEDDING = (RNG.rand(7, 4) * 4 - 2).astype("float32")
END = 1
found = {}


def part(function):
    """Runs a function in a graph whose variables have numbers by their order."""
    with tf.Graph().as_default():
        result = function()
        variables = sorted(tf.global_variables(), key=lambda v: v.name)
        random = np.random.RandomState(2)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            for variable in variables:
                value = random.rand(*variable.shape.as_list()) * 2 - 0.7
                variable.load(np.asarray(value, "float32"), session)
            values = session.run([x for x in tf.contrib.framework.nest.flatten(result)])
        found[function.__name__] = {
            "values": numbers(values),
            "variables": [v.op.name for v in variables],
        }
    return function


def cell():
    return tf.nn.rnn_cell.LSTMCell(8, name="cell")


def layer():
    return tf.layers.Dense(7, use_bias=False, name="projection")


def memory(**kwargs):
    return dict(memory=tf.constant(MEMORY), memory_sequence_length=MEMORY_LENGTHS)


@part
def training():
    helper = s2s.TrainingHelper(tf.constant(INPUTS), LENGTHS)
    one = cell()
    decoder = s2s.BasicDecoder(one, helper, one.zero_state(3, tf.float32), layer())
    outputs, state, lengths = s2s.dynamic_decode(decoder)
    loss = s2s.sequence_loss(
        outputs.rnn_output,
        tf.argmax(outputs.rnn_output, -1, output_type=tf.int32),
        tf.sequence_mask(lengths, 5, tf.float32),
    )
    gradients = tf.gradients(loss, tf.trainable_variables())
    return [outputs, state, lengths, loss] + [tf.norm(g) for g in gradients]


@part
def imputed_in_time_major():
    helper = s2s.TrainingHelper(
        tf.constant(INPUTS.transpose(1, 0, 2)), LENGTHS, time_major=True
    )
    one = cell()
    decoder = s2s.BasicDecoder(one, helper, one.zero_state(3, tf.float32))
    return s2s.dynamic_decode(
        decoder,
        output_time_major=True,
        impute_finished=True,
        maximum_iterations=4,
        scope="other",
    )


@part
def bahdanau():
    attention = s2s.BahdanauAttention(5, normalize=True, **memory())
    wrapped = s2s.AttentionWrapper(
        cell(), attention, attention_layer_size=6, alignment_history=True
    )
    helper = s2s.TrainingHelper(tf.constant(INPUTS), LENGTHS)
    decoder = s2s.BasicDecoder(
        wrapped, helper, wrapped.zero_state(3, tf.float32), layer()
    )
    outputs, state, lengths = s2s.dynamic_decode(decoder)
    gradients = tf.gradients(outputs.rnn_output, tf.trainable_variables())
    return [
        outputs,
        state.attention,
        state.time,
        state.alignments,
        state.alignment_history.stack(),
        lengths,
    ] + [tf.norm(g) for g in gradients]


@part
def luong():
    attention = s2s.LuongAttention(8, scale=True, **memory())
    one = cell()
    wrapped = s2s.AttentionWrapper(
        one,
        attention,
        output_attention=False,
        initial_cell_state=one.zero_state(3, tf.float32),
        name="alignment",
    )
    helper = s2s.GreedyEmbeddingHelper(tf.constant(EMBEDDING), [0, 2, 3], END)
    start = wrapped.zero_state(3, tf.float32)
    decoder = s2s.BasicDecoder(wrapped, helper, start, layer())
    outputs, state, lengths = s2s.dynamic_decode(decoder, maximum_iterations=6)
    return [outputs, state.cell_state, state.attention, lengths]


def hardest(scores):
    return tf.one_hot(tf.argmax(scores, -1), 6)


@part
def stack():
    wrapped = s2s.AttentionWrapper(
        tf.nn.rnn_cell.MultiRNNCell([cell(), tf.nn.rnn_cell.GRUCell(8)]),
        s2s.LuongAttention(8, probability_fn=hardest, **memory()),
        alignment_history=True,
        cell_input_fn=lambda inputs, attention: tf.concat([attention, inputs], -1),
    )
    helper = s2s.TrainingHelper(tf.constant(INPUTS), LENGTHS)
    start = wrapped.zero_state(3, tf.float32).clone()
    decoder = s2s.BasicDecoder(wrapped, helper, start)
    outputs, state, lengths = s2s.dynamic_decode(decoder)
    return [outputs, state.alignments, state.alignment_history.stack(), lengths]


def beam(weight):
    tiled = s2s.tile_batch((tf.constant(MEMORY), tf.constant(MEMORY_LENGTHS)), 3)
    attention = s2s.BahdanauAttention(5, tiled[0], tiled[1])
    wrapped = s2s.AttentionWrapper(cell(), attention, attention_layer_size=6)
    start = cell().zero_state(3, tf.float32)
    start = wrapped.zero_state(9, tf.float32).clone(
        cell_state=s2s.tile_batch(start, multiplier=3)
    )
    decoder = s2s.BeamSearchDecoder(
        wrapped,
        lambda ids: tf.nn.embedding_lookup(tf.constant(EMBEDDING), ids),
        tf.constant([0, 2, 3]),
        END,
        start,
        3,
        layer(),
        length_penalty_weight=weight,
    )
    outputs, state, lengths = s2s.dynamic_decode(decoder, maximum_iterations=6)
    return [
        outputs.predicted_ids,
        outputs.beam_search_decoder_output,
        state.cell_state.cell_state,
        state.log_probs,
        state.finished,
        state.lengths,
        lengths,
    ]


@part
def beams():
    return beam(0.0)


@part
def beams_with_a_length_penalty():
    return beam(0.8)


@part
def tree():
    ids = RNG.randint(0, 5, [5, 2, 3]).astype("int32")
    parents = RNG.randint(0, 3, [5, 2, 3]).astype("int32")
    return s2s.gather_tree(ids, parents, [5, 3], END)


@part
def sampled():
    # The decisions are certain: the numbers that are drawn do not matter.
    made = []
    for probability in (0.0, 1.0):
        with tf.variable_scope("at_%d" % probability):
            helper = s2s.ScheduledEmbeddingTrainingHelper(
                tf.constant(INPUTS), LENGTHS, tf.constant(EMBEDDING), probability
            )
            one = cell()
            start = one.zero_state(3, tf.float32)
            outputs, state = one(tf.constant(INPUTS[:, 0]), start)
            ids = helper.sample(tf.constant(0), outputs[:, :7] * 1e5, state)
            made += [ids, helper.next_inputs(tf.constant(0), outputs, state, ids)]
    helper = s2s.SampleEmbeddingHelper(tf.constant(EMBEDDING), [0, 2, 3], END, 1e-3)
    ids = helper.sample(tf.constant(0), tf.constant(INPUTS[:, 0]), ())
    return made + [ids, helper.next_inputs(tf.constant(0), None, (), ids)[:2]]


with open(sys.argv[2], "w") as f:
    f.write(json.dumps(found, sort_keys=True) + "\n")
