"""A TF1 script as it was: placeholders, a session, queues of none, at module level."""
from __future__ import print_function

import numpy as np
import tensorflow as tf

flags = tf.app.flags
FLAGS = flags.FLAGS
flags.DEFINE_float('rate', 0.05, 'Learning rate.')

random = np.random.RandomState(1)
data = random.normal(size=[64, 4]).astype('float32')
target = data.sum(axis=1, keepdims=True)

x = tf.placeholder(tf.float32, [None, 4])
y = tf.placeholder(tf.float32, [None, 1])
w = tf.get_variable('w', [4, 1], initializer=tf.zeros_initializer())
loss = tf.losses.mean_squared_error(y, tf.matmul(x, w))
step = tf.train.get_or_create_global_step()
train = tf.train.MomentumOptimizer(FLAGS.rate, 0.9).minimize(loss, global_step=step)
saver = tf.train.Saver()

with tf.Session() as session:
  session.run(tf.global_variables_initializer())
  for i in range(6):
    batch = slice(8 * i, 8 * i + 8)
    _, value = session.run([train, loss], {x: data[batch], y: target[batch]})
    print('step', session.run(step), 'loss', value)
  saver.save(session, 'out/model', global_step=step)
