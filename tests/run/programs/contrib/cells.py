"""Cells of tf.contrib.rnn; prints variables, values and gradients, as TensorFlow 1.15 does."""
import json

import numpy as np
import tensorflow as tf
from numbers_of import numbers

rnn = tf.contrib.rnn
RNG = np.random.RandomState(3)
SEQUENCE = tf.constant(RNG.randn(2, 4, 3).astype("float32"))
PICTURES = tf.constant(RNG.randn(2, 3, 4, 5, 2).astype("float32"))
LSTM = tf.nn.rnn_cell.BasicLSTMCell
CELLS = {
    "norm": lambda: rnn.LayerNormBasicLSTMCell(3, norm_gain=0.9, norm_shift=0.1),
    "plain": lambda: rnn.LayerNormBasicLSTMCell(2, 0.5, None, tf.nn.relu, layer_norm=False),
    "dropped": lambda: rnn.LayerNormBasicLSTMCell(3, dropout_keep_prob=tf.constant(1.0)),
    "nas": lambda: rnn.NASCell(3, use_bias=True),
    "nas_projected": lambda: rnn.NASCell(3, num_proj=2, name="other"),
    "attention": lambda: rnn.AttentionCellWrapper(LSTM(3), 2),
    "attention_sizes": lambda: rnn.AttentionCellWrapper(
        LSTM(3), 2, attn_size=4, attn_vec_size=5, input_size=2),
    "attention_flat": lambda: rnn.AttentionCellWrapper(
        tf.nn.rnn_cell.GRUCell(3), 3, state_is_tuple=False),
    "many": lambda: rnn.MultiRNNCell([rnn.NASCell(2), rnn.LayerNormBasicLSTMCell(2)]),
}
CONVOLUTIONS = {
    "conv_1d": (lambda: rnn.Conv1DLSTMCell(input_shape=[5, 2], output_channels=3, kernel_shape=[2]),
                PICTURES[:, :, 0]),
    "conv_2d": (lambda: rnn.Conv2DLSTMCell(
        input_shape=[4, 5, 2], output_channels=3, kernel_shape=[3, 3]), PICTURES),
    "conv_3d": (lambda: rnn.Conv3DLSTMCell(
        input_shape=[3, 4, 5, 2], output_channels=1, kernel_shape=[2, 2, 2], use_bias=False),
        tf.stack([PICTURES] * 2, 1)),
    "skips": (lambda: rnn.ConvLSTMCell(
        2, [4, 5, 2], 1, [3, 3], skip_connection=True, forget_bias=0.5), PICTURES[:, :1]),
}


def errors():
    for make in (
        lambda: rnn.AttentionCellWrapper(LSTM(2), 0),
        lambda: rnn.AttentionCellWrapper(LSTM(2), 2, state_is_tuple=False),
        lambda: rnn.ConvLSTMCell(2, [4, 5], 1, [3, 3]),
    ):
        try:
            make()
            yield "none"
        except ValueError as e:
            yield str(e)


found = {"errors": list(errors())}
made = {name: (make, SEQUENCE) for name, make in CELLS.items()}
made.update(CONVOLUTIONS)
results = {}
for name, (make, inputs) in sorted(made.items()):
    with tf.variable_scope(name):
        cell = make()
        once, state = cell(inputs[:, 0], cell.zero_state(2, tf.float32))
        outputs = once
        if name != "skips":  # of another shape than its state
            outputs, state = tf.nn.dynamic_rnn(cell, inputs, dtype=tf.float32)
        variables = tf.trainable_variables(name + "/")
        gradients = tf.gradients(tf.reduce_sum(outputs), variables)
        results[name] = [outputs, tf.concat(once, 0), gradients]
        results[name] += [tf.reduce_sum(part) for part in tf.contrib.framework.nest.flatten(state)]
found["names"] = [[v.op.name, v.shape.as_list()] for v in tf.trainable_variables()]
config = tf.ConfigProto()  # the graph runs once: no time goes into its optimization
config.graph_options.rewrite_options.disable_meta_optimizer = True
with tf.Session(config=config) as session:
    session.run(tf.global_variables_initializer())
    initial = {}  # differs between versions
    for variable in tf.trainable_variables():
        is_set = variable.op.name.endswith(("gamma", "beta", "bias", "biases"))
        if not is_set or variable.op.name.startswith("plain/"):
            size = np.prod(variable.shape.as_list())
            values = np.sin(np.arange(size)).reshape(variable.shape.as_list()) / 2
            initial[variable.initializer] = values.astype("float32")
    session.run(list(initial), {op.inputs[1]: value for op, value in initial.items()})
    found["values"] = numbers(session.run(results))
print(json.dumps(found, sort_keys=True))
