"""Gradients and iterators of tf.contrib.eager; prints what they give."""
import json

import tensorflow as tf

tfe = tf.contrib.eager
tf.enable_eager_execution()
found = {}
weight = tfe.Variable(3.0)
offset = tfe.Variable([1.0, 2.0])


def loss(x, factor=1.0):
    return factor * tf.reduce_sum(weight * x + offset ** 2)


def numbers(value):
    return [v.numpy().tolist() for v in tf.contrib.framework.nest.flatten(value)]


grads = tfe.implicit_gradients(loss)([4.0, 5.0])
found["implicit"] = sorted(numbers([g for g, _ in grads]), key=str)
found["shapes"] = sorted(str(v.shape) for _, v in grads)
value, grads = tfe.implicit_value_and_gradients(loss)([4.0, 5.0], factor=2.0)
found["value"] = numbers([value]) + sorted(numbers([g for g, _ in grads]), key=str)
square = lambda x, y: x * x * y
found["of_arguments"] = numbers(tfe.gradients_function(square)(3.0, 5.0))
found["of_one"] = numbers(tfe.gradients_function(square, params=[1])(3.0, 5.0))
value, grads = tfe.value_and_gradients_function(square)(3.0, 5.0)
found["with_value"] = numbers([value, grads])
optimizer = tf.train.GradientDescentOptimizer(0.1)
optimizer.apply_gradients(tfe.implicit_gradients(loss)([1.0, 1.0]))
found["trained"] = numbers([weight, offset])
for name, function in (("none", lambda: None), ("no variables", lambda: tf.ones([]))):
    try:
        tfe.implicit_gradients(function)()
    except ValueError as e:
        found[name] = str(e)[:30]
iterator = tfe.Iterator(tf.data.Dataset.range(6).batch(2))
found["batches"] = numbers([iterator.next(), next(iterator)])
found["last"] = numbers(list(iterator))
try:
    iterator.get_next()
except tf.errors.OutOfRangeError:
    found["end"] = "OutOfRangeError"
print(json.dumps(found))
