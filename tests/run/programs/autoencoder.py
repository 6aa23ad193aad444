"""A variational autoencoder in MonitoredSession and SingularMonitoredSession."""
import argparse
import os

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
tf.logging.set_verbosity(tf.logging.INFO)


class InitIteratorHook(tf.train.SessionRunHook):
    """Starts the iterator once the session is there."""

    def __init__(self, initializer, feed_dict):
        self._initializer, self._feed_dict = initializer, feed_dict

    def after_create_session(self, session, coord):
        session.run(self._initializer, self._feed_dict)


def build(args):
    random = np.random.RandomState(1)
    data = (random.rand(80, 12) < np.linspace(0.1, 0.9, 12)).astype(np.float32)
    features = tf.placeholder(tf.float32, data.shape)
    iterator = tf.data.Dataset.from_tensor_slices(features).repeat(
        args.epochs).batch(args.batch_size, drop_remainder=True
                           ).make_initializable_iterator()
    x = iterator.get_next()

    def dense(inputs, units, seed, activation=None):
        return tf.layers.dense(
            inputs, units, activation,
            kernel_initializer=tf.initializers.glorot_normal(seed=seed))

    hidden = dense(x, 10, 1, tf.nn.softplus)
    mean, log_var = tf.split(dense(hidden, 4, 2), 2, axis=1)
    noise = tf.random.stateless_normal(
        tf.shape(mean), seed=tf.stack([7, tf.train.get_or_create_global_step()]))
    z = mean + tf.exp(log_var / 2) * noise
    logits = dense(dense(z, 10, 3, tf.nn.softplus), 12, 4)
    reconstruction = tf.reduce_sum(
        tf.nn.sigmoid_cross_entropy_with_logits(labels=x, logits=logits), 1)
    divergence = 0.5 * tf.reduce_sum(
        tf.exp(log_var) + mean ** 2 - 1. - log_var, 1)
    loss = tf.reduce_mean(reconstruction + divergence, name='elbo_loss')
    tf.summary.scalar('loss', loss)
    optimizer = tf.train.AdamOptimizer(0.02)
    train_op = optimizer.minimize(
        loss, global_step=tf.train.get_or_create_global_step())
    return train_op, loss, InitIteratorHook(
        iterator.initializer, {features: data})


def main(args):
    checkpoint_dir = os.path.join(args.output, 'checkpoints')
    with tf.Graph().as_default():
        train_op, loss, start = build(args)
        scaffold = tf.train.Scaffold(saver=tf.train.Saver(max_to_keep=3))
        hooks = [
            start,
            tf.train.CheckpointSaverHook(
                checkpoint_dir, save_steps=5, scaffold=scaffold),
            tf.train.LoggingTensorHook({'loss': loss}, every_n_iter=1),
            tf.train.StepCounterHook(every_n_steps=5,
                                     output_dir=checkpoint_dir),
        ]
        creator = tf.train.ChiefSessionCreator(
            scaffold=scaffold, checkpoint_dir=checkpoint_dir,
            config=tf.ConfigProto(allow_soft_placement=True))
        with tf.train.MonitoredSession(creator, hooks=hooks) as session:
            while not session.should_stop():
                session.run(train_op)

    # Goes on from the checkpoint for some steps.
    with tf.Graph().as_default():
        train_op, loss, start = build(args)
        with tf.train.SingularMonitoredSession(
                hooks=[start, tf.train.StopAtStepHook(num_steps=3)],
                checkpoint_dir=checkpoint_dir) as session:
            while not session.should_stop():
                _, value = session.run([train_op, loss])
                print('more loss: %.7f' % value)


if __name__ == '__main__':
    parser = argparse.ArgumentParser()
    parser.add_argument('--output', required=True)
    parser.add_argument('--batch-size', type=int, default=16)
    parser.add_argument('--epochs', type=int, default=2)
    main(parser.parse_args())
