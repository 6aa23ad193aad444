"""SyncReplicasOptimizer in one process, with its own hook."""
import numpy as np
import tensorflow as tf

v1 = tf.compat.v1


def main():
  x = np.linspace(0, 1, 12, dtype='float32').reshape(6, 2)
  with tf.Graph().as_default():
    with tf.device(v1.train.replica_device_setter(ps_tasks=0)):
      step = v1.train.get_or_create_global_step()
      weights = v1.get_variable(
          'weights', [2, 1], initializer=v1.ones_initializer())
      loss = tf.reduce_mean(input_tensor=tf.square(tf.matmul(x, weights)))
      optimizer = v1.train.SyncReplicasOptimizer(
          v1.train.GradientDescentOptimizer(0.2), replicas_to_aggregate=1,
          total_num_replicas=1)
      train_op = optimizer.minimize(loss, global_step=step)
    hooks = [optimizer.make_session_run_hook(is_chief=True),
             tf.estimator.StopAtStepHook(last_step=5)]
    # The optimizer's thread stays with its queue; the default is to wait 120 s for it.
    with v1.train.MonitoredTrainingSession(
        is_chief=True, hooks=hooks, stop_grace_period_secs=1) as session:
      while not session.should_stop():
        _, value = session.run([train_op, loss])
        print('loss', value)


if __name__ == '__main__':
  main()
