"""Functions of tf.contrib that TensorFlow 2 has with other arguments; prints as 1.15 does."""
import json
import os
import tempfile

import tensorflow as tf
from numbers_of import numbers
from tensorflow.contrib.rnn.python.ops import core_rnn_cell
from tensorflow.contrib.rnn.python.ops.core_rnn_cell import _Linear, _linear

framework, training = tf.contrib.framework, tf.contrib.training
results = {}
options = {"average_across_timesteps": False, "average_across_batch": False}
scores = tf.constant([[[1.0, 2.0], [0.5, 0.1]], [[3.0, 1.0], [0.0, 1.0]]])
for summed in ("sum_over_timesteps", "sum_over_batch"):
    options[summed] = True
    results[summed] = tf.contrib.seq2seq.sequence_loss(
        scores, tf.constant([[0, 1], [1, 0]]), tf.constant([[1.0, 0.5], [0.0, 2.0]]), **options)
parts = [tf.constant([[1.0, 2.0]]), tf.constant([[3.0]])]
with tf.variable_scope("linear", initializer=tf.constant_initializer(0.5)):
    results["linear"] = _linear(parts, 2, True)
with tf.variable_scope("plain", initializer=tf.constant_initializer(0.5)):
    results["plain"] = core_rnn_cell._linear(parts[0], 2, False)
ones = tf.ones_initializer()
with tf.variable_scope("made", partitioner=tf.fixed_size_partitioner(2)):
    made = _Linear(parts, 2, True, bias_initializer=ones, kernel_initializer=ones)
    results["made"] = [made(parts), made([2 * part for part in parts])]
names = sorted(v.name for v in tf.trainable_variables())
nested = framework.py_func(
    lambda x, y: {"a": x + y, "b": [x * y]}, [tf.constant([1.0, 2.0])],
    {"y": tf.constant([3.0, 5.0])}, {"a": tf.float32, "b": [tf.float32]}, {"a": [2], "b": [[2]]})
results["nested"] = [nested["a"], nested["b"][0]]
plain = framework.py_func(
    lambda x: x * x, (tf.constant(3.0),), output_types=tf.float32, output_shapes=[])
shapes = [plain.shape.as_list(), nested["b"][0].shape.as_list()]
framework.assert_scalar(plain, "named")
weight = tf.get_variable("weight", initializer=[1.0, 2.0])
eager = tf.contrib.eager.Variable(3.0, name="eager")
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    found = {name: numbers(session.run(value)) for name, value in results.items()}
    found["values"] = numbers(session.run([plain, eager]))
    folder = tempfile.mkdtemp()
    path = tf.train.Saver([weight]).save(session, os.path.join(folder, "model"))
found["shapes"], found["names"] = shapes, names
found["checkpoint"] = [
    framework.load_checkpoint(filepattern=path).get_tensor("weight").tolist(),
    framework.load_variable(checkpoint_dir=folder, name="weight:0").tolist(),
    framework.list_variables(checkpoint_dir=folder),
]
with tf.Graph().as_default(), tf.Session() as session:
    other = tf.get_variable("other", [2])
    framework.init_from_checkpoint(checkpoint_dir=folder, assignment_map={"weight": other})
    session.run(tf.global_variables_initializer())
    found["initialized"] = session.run(other).tolist()


def batches(bucket, number, **given):
    """The batches of the elements [1], [2, 2] and so on, sorted; and their shapes."""
    with tf.Graph().as_default(), tf.Session() as session:
        size = tf.train.range_input_producer(number, 1, shuffle=False).dequeue() + 1
        row = tf.fill([size], size)
        which, batch = bucket(size, row, **given)
        shapes = [t.shape.as_list() for t in tf.contrib.framework.nest.flatten(batch)]
        session.run(tf.local_variables_initializer())
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coordinator)
        read = []
        try:
            while True:
                read.append(numbers(session.run([which, batch])))
        except tf.errors.OutOfRangeError:
            coordinator.request_stop()
        coordinator.join(threads)
        names = [v.name for v in tf.get_collection(tf.GraphKeys.QUEUE_RUNNERS)]
        return [sorted(read, key=json.dumps), shapes, names]


def by_length(size, row, **given):
    return training.bucket_by_sequence_length(size, [row], 2, [3, 5], **given)


def in_dictionary(size, row, **given):
    return training.bucket_by_sequence_length(
        size, {"row": row, "size": size}, [1, 2, 3], [3, 5], **given)


def by_parity(size, row, **given):
    return training.bucket([size], size % 2, 2, 2, **given)


def alone(size, row, **given):
    return training.bucket({"size": size}, size % 2, 2, 2, **given)


found["by_length"] = batches(by_length, 9, dynamic_pad=True)
found["smaller"] = batches(by_length, 9, dynamic_pad=True, allow_smaller_final_batch=True)
found["dictionary"] = batches(in_dictionary, 12, dynamic_pad=True)
found["parity"] = batches(by_parity, 6, bucket_capacities=[3, 4], shared_name="shared")
found["alone"] = batches(alone, 6)
errors = []
for bad in ([], [3, 3], 4):
    try:
        training.bucket_by_sequence_length(tf.constant(1), [tf.constant([1])], 2, bad)
    except (TypeError, ValueError) as e:
        errors.append(type(e).__name__)
found["errors"] = errors
print(json.dumps(found))
