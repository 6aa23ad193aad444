"""A program of TensorFlow 1 that shows what its process looks like, as JSON."""

from __future__ import print_function

import json
import multiprocessing
import pickle
import sys

import keras
import tensorflow as tf
import shared.helper as helper
from keras.layers import Dense
from tensorflow.python.keras import backend as private_backend
from tensorflow.python.framework.ops import Tensor
from tensorflow.python.estimator.model_fn import ModeKeys

flags = tf.app.flags
flags.DEFINE_integer("steps", 2, "Steps to train.")
flags.DEFINE_string("end", "", "How to end.")
FLAGS = flags.FLAGS


class Point(object):
    def __init__(self, x):
        self.x = x


class Counter(tf.estimator.SessionRunHook):
    count = 0

    def after_run(self, context, values):
        self.count += 1


def train():
    x = tf.placeholder(tf.float32, [None, 2])
    ones = tf.ones_initializer()
    y = tf.layers.dense(x, 1, use_bias=False, kernel_initializer=ones)
    loss = tf.losses.mean_squared_error(tf.zeros_like(y), y)
    step = tf.train.get_or_create_global_step()
    with tf.device(tf.train.replica_device_setter(ps_tasks=0)):
        train_op = tf.train.GradientDescentOptimizer(0.125).minimize(loss, step)
    counter = Counter()
    hooks = [tf.train.StopAtStepHook(FLAGS.steps), counter]
    losses = []
    with tf.train.MonitoredTrainingSession(hooks=hooks) as session:
        while not session.should_stop():
            feeds = {x: [[1.0, 2.0]]}
            losses.append(float(session.run([loss, train_op], feeds)[0]))
    return losses, counter.count, x.shape[1].value


def child(point, queue):
    has_placeholder = hasattr(tf, "placeholder")
    queue.put((point.x, has_placeholder, tf.executing_eagerly(), helper.OLD))


def main(_):
    losses, count, width = train()
    seen = {
        "losses": losses,
        "count": count,
        "width": width,
        "argv": sys.argv,
        "file": __file__,
        "path": sys.path[0],
        "name": __name__,
        "main": sys.modules["__main__"].Point is Point,
        "spec": __spec__ is None,
        "pickled": pickle.loads(pickle.dumps(Point(3))).x,
        "helper": helper.OLD,
        "mode": ModeKeys.TRAIN,
        "keras": tf.keras.__name__,
        "keras_version": keras.__version__[0],
        "same_keras": [
            issubclass(Dense, tf.keras.layers.Layer),
            private_backend.get_session.__module__.partition(".")[0],
            Tensor is tf.Tensor,
        ],
        "library": helper.library_sees(),
        "stdin": sys.stdin.read(),
    }
    for method in sys.argv[3:]:
        context = multiprocessing.get_context(method)
        queue = context.Queue()
        process = context.Process(target=child, args=(Point(method), queue))
        process.start()
        seen[method] = queue.get(timeout=240)
        process.join()
    print(json.dumps(seen))
    sys.stdout.flush()
    if FLAGS.end == "error":
        helper.fail()


if __name__ == "__main__":
    tf.app.run()
