"""Names of TensorFlow 1 behind which nothing stands; prints what their use says."""
import json

import tensorflow as tf
import tensorflow.contrib.gan as tfgan
from tensorflow.contrib.timeseries.python.timeseries import model
from tensorflow.contrib.opt import AdamWOptimizer

try:
    import tensorflow.contrib.ffmpeg as ffmpeg
except ImportError:
    ffmpeg = None

try:
    from tensorflow.contrib import slim
    from tensorflow.contrib.image import rotate
except ImportError as e:
    rotate = str(e)


class Layer(tf.layers.Layer):
    """AutoGraph converts `call`, which has imports of TensorFlow 1."""

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


def derive():
    class Mine(AdamWOptimizer):
        pass


with tf.name_scope("outer"):
    x, names = Layer()(tf.ones([2]))
print(json.dumps([tf.Session().run(x).tolist(), *names]))
said = [tf.placeholder.__name__, ffmpeg, rotate, isinstance(3, AdamWOptimizer)]
for use in (
    lambda: tfgan.GANModel(1),
    derive,
    lambda: tf.contrib.learn.DNNClassifier([3]),
    lambda: model.TimeSeriesModel(),
):
    try:
        use()
        said.append("nothing")
    except NotImplementedError as e:
        said.append(str(e))
print(json.dumps(said))
tfgan.gan_train()
