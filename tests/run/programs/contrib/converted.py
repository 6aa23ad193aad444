"""A layer that AutoGraph converts, with imports of TensorFlow 1 in its function."""
import json

import tensorflow as tf


class Layer(tf.layers.Layer):
    def call(self, x):
        from tensorflow.contrib import (
            framework,
            layers,
        )
        try:
            from tensorflow.contrib import image
        except ImportError:
            image = None
        import tensorflow as inner; one = inner.ones_like(x)
        if tf.reduce_sum(x) > 0:
            x = x + one
        return x, [framework.get_name_scope(), layers.flatten.__name__, image]


with tf.name_scope("outer"):
    x, names = Layer()(tf.ones([2]))
print(json.dumps([tf.Session().run(x).tolist(), *names]))
