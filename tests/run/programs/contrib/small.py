"""Small functions of tf.contrib; prints variables and values, as TensorFlow 1.15 does."""
import json

import tensorflow as tf

legacy = tf.contrib.legacy_seq2seq
rnn = tf.contrib.rnn
tf.set_random_seed(1)
fill = tf.constant_initializer(0.25)
with tf.variable_scope("model", initializer=fill):
    ids = tf.constant([[1, 2, 3], [0, 1, 1]])
    embedded = tf.contrib.layers.embed_sequence(ids, vocab_size=5, embed_dim=4)
    again = tf.contrib.layers.embed_sequence(
        ids, 5, 4, unique=True, scope="EmbedSequence", reuse=True)
    cell = rnn.OutputProjectionWrapper(
        rnn.InputProjectionWrapper(tf.nn.rnn_cell.BasicLSTMCell(2), 3), 2, tf.nn.relu)
    outputs, state = tf.nn.dynamic_rnn(cell, embedded, dtype=tf.float32)
    listed, _ = tf.nn.static_rnn(
        rnn.OutputProjectionWrapper(tf.nn.rnn_cell.GRUCell(2), 3),
        tf.unstack(embedded, axis=1), dtype=tf.float32, scope="other")
targets = [tf.constant([0, 2])] * 3
weights = [tf.constant([1.0, 0.5]), tf.constant([1.0, 1.0]), tf.constant([0.0, 1.0])]
results = {
    "embedded": embedded,
    "again": again,
    "outputs": outputs,
    "by_example": legacy.sequence_loss_by_example(listed, targets, weights),
    "loss": legacy.sequence_loss(listed, targets, weights),
    "total": legacy.sequence_loss(listed, targets, weights, False, False),
}
with tf.variable_scope("decoder", initializer=fill):
    steps = [tf.ones([1, 2]), tf.zeros([1, 2]), tf.ones([1, 2])]
    lstm = tf.nn.rnn_cell.BasicLSTMCell(2)
    start = lstm.zero_state(1, tf.float32)
    decoded, last = legacy.rnn_decoder(steps, start, lstm)
    looped, _ = legacy.rnn_decoder(
        steps, start, lstm, lambda before, number: before * number, scope="looped")
    results.update(decoded=tf.concat(decoded, 0), last=last.c, looped=tf.concat(looped, 0))
texts = ["one two, two", "three two ONEtwo don't", "four"]
processor = tf.contrib.learn.preprocessing.VocabularyProcessor(4)
rare = tf.contrib.learn.preprocessing.VocabularyProcessor(4, min_frequency=1)
rows = [row.tolist() for row in processor.fit_transform(texts)]
rows += [row.tolist() for row in processor.transform(["two five one"])]
rows += [row.tolist() for row in rare.fit_transform(texts)]
words = [*processor.reverse(rows), str(len(processor.vocabulary_)), str(len(rare.vocabulary_))]
column = tf.contrib.layers.real_valued_column("age", dimension=2)
names = sorted([v.op.name, v.shape.as_list()] for v in tf.trainable_variables())
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    values = session.run(results)
lists = {name: value.tolist() for name, value in values.items()}
print(json.dumps({"names": names, "values": lists, "columns": isinstance(column, tuple), "rows": rows, "words": words}))
