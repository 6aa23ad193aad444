"""A program of TensorFlow 1, as it was written: linear regression with a hook.

hookbridge run examples/old_program.py
"""

import numpy as np
import tensorflow as tf

data = np.random.RandomState(0).normal(size=[512, 4]).astype("float32")
target = data.dot([[1.0], [-2.0], [3.0], [0.5]])

x = tf.placeholder(tf.float32, [None, 4])
y = tf.placeholder(tf.float32, [None, 1])
weights = tf.get_variable("weights", [4, 1], initializer=tf.zeros_initializer())
loss = tf.losses.mean_squared_error(y, tf.matmul(x, weights))
step = tf.train.get_or_create_global_step()
train_op = tf.train.GradientDescentOptimizer(0.05).minimize(loss, global_step=step)

hooks = [tf.train.StopAtStepHook(last_step=30)]
with tf.train.MonitoredTrainingSession(hooks=hooks) as session:
    while not session.should_stop():
        _, last_loss = session.run([train_op, loss], {x: data, y: target})
print("loss after 30 steps:", round(float(last_loss), 3))
