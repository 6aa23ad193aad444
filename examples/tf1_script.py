"""A TF1 training script: linear regression in a session, with one hook."""

import numpy as np
import tensorflow as tf

tf.compat.v1.disable_eager_execution()
v1 = tf.compat.v1

x = np.random.default_rng(0).normal(size=[512, 4]).astype("float32")
y = x @ np.array([[1.0], [-2.0], [3.0], [0.5]], "float32")
data = tf.data.Dataset.from_tensor_slices((x, y)).repeat().batch(32)
features, labels = v1.data.make_one_shot_iterator(data).get_next()

weights = v1.get_variable("weights", [4, 1])
loss = v1.losses.mean_squared_error(labels, features @ weights)
step = v1.train.get_or_create_global_step()
train_op = v1.train.GradientDescentOptimizer(0.05).minimize(loss, global_step=step)

hooks = [v1.train.StopAtStepHook(last_step=1600)]
with v1.train.MonitoredTrainingSession(hooks=hooks) as session:
    while not session.should_stop():
        last_step, last_loss = session.run([step, loss, train_op])[:2]
print(f"stopped after about {last_step} steps, loss {last_loss:.6f}")
