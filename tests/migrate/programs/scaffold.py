"""A scaffold, a session creator and the rarer hooks."""
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()


def main():
  x = tf.get_variable('x', [], initializer=tf.constant_initializer(3.0))
  start = tf.get_variable('start', [], initializer=tf.zeros_initializer())
  loss = tf.square(x - start, name='loss')
  step = tf.train.get_or_create_global_step()
  train_op = tf.train.GradientDescentOptimizer(0.1).minimize(
      loss, global_step=step, var_list=[x])

  move = start.assign(1.0)

  def init_fn(scaffold, session):
    session.run(move)

  scaffold = tf.train.Scaffold(init_fn=init_fn)
  final = tf.estimator.FinalOpsHook({'x': x.read_value()})
  hooks = [final, tf.estimator.FeedFnHook(lambda: {}),
           tf.estimator.GlobalStepWaiterHook(0),
           tf.estimator.CheckpointSaverHook('out', save_steps=2, scaffold=scaffold),
           tf.estimator.StopAtStepHook(last_step=5)]
  creator = tf.train.ChiefSessionCreator(scaffold, checkpoint_dir='out')
  with tf.train.MonitoredSession(session_creator=creator, hooks=hooks) as session:
    while not session.should_stop():
      _, value = session.run([train_op, loss])
      print('loss', value)
  print('x', final.final_ops_values['x'])


if __name__ == '__main__':
  main()
