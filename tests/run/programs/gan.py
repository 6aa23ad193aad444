"""A GAN with two train ops, with its graph at module level."""
import os

import numpy as np
import tensorflow as tf

mb_size = 32
Z_dim = 6
X_dim = 16


def weight(shape, seed):
    in_dim = shape[0]
    xavier_stddev = 1. / tf.sqrt(in_dim / 2.)
    return tf.Variable(tf.random_normal(shape=shape, stddev=xavier_stddev,
                                        seed=seed))


X = tf.placeholder(tf.float32, shape=[None, X_dim])

D_W1 = weight([X_dim, 12], 1)
D_b1 = tf.Variable(tf.zeros(shape=[12]))
D_W2 = weight([12, 1], 2)
D_b2 = tf.Variable(tf.zeros(shape=[1]))
theta_D = [D_W1, D_W2, D_b1, D_b2]

Z = tf.placeholder(tf.float32, shape=[None, Z_dim])

G_W1 = weight([Z_dim, 12], 3)
G_b1 = tf.Variable(tf.zeros(shape=[12]))
G_W2 = weight([12, X_dim], 4)
G_b2 = tf.Variable(tf.zeros(shape=[X_dim]))
theta_G = [G_W1, G_W2, G_b1, G_b2]

random = np.random.RandomState(8)


def sample_Z(m, n):
    return random.uniform(-1., 1., size=[m, n])


def next_batch(m):
    x = random.rand(m, X_dim) * 0.3
    x[:, ::3] += 0.6
    return x


def generator(z):
    G_h1 = tf.nn.relu(tf.matmul(z, G_W1) + G_b1)
    G_log_prob = tf.matmul(G_h1, G_W2) + G_b2
    return tf.nn.sigmoid(G_log_prob)


def discriminator(x):
    D_h1 = tf.nn.relu(tf.matmul(x, D_W1) + D_b1)
    return tf.matmul(D_h1, D_W2) + D_b2


G_sample = generator(Z)
D_logit_real, D_logit_fake = discriminator(X), discriminator(G_sample)


def cross_entropy(logits, label):
    return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(
        logits=logits, labels=label(logits)))


D_loss = (cross_entropy(D_logit_real, tf.ones_like) +
          cross_entropy(D_logit_fake, tf.zeros_like))
G_loss = cross_entropy(D_logit_fake, tf.ones_like)

D_solver = tf.train.AdamOptimizer().minimize(D_loss, var_list=theta_D)
G_solver = tf.train.AdamOptimizer().minimize(G_loss, var_list=theta_G)

tf.summary.scalar('D_loss', D_loss)
tf.summary.scalar('G_loss', G_loss)
merged = tf.summary.merge_all()

sess = tf.InteractiveSession()
writer = tf.summary.FileWriter('logs', sess.graph)
sess.run(tf.global_variables_initializer())
saver = tf.train.Saver(max_to_keep=2)

if not os.path.exists('out/'):
    os.makedirs('out/')

for it in range(14):
    if it % 7 == 0:
        samples = sess.run(G_sample, feed_dict={Z: sample_Z(4, Z_dim)})
        np.save('out/{}.npy'.format(it), samples)

    X_mb = next_batch(mb_size)
    _, D_loss_curr = sess.run(
        [D_solver, D_loss],
        feed_dict={X: X_mb, Z: sample_Z(mb_size, Z_dim)})
    _, G_loss_curr, summary = sess.run(
        [G_solver, G_loss, merged],
        feed_dict={X: X_mb, Z: sample_Z(mb_size, Z_dim)})
    writer.add_summary(summary, it)

    print('Iter: {}'.format(it))
    print('D_loss: {:.7}'.format(D_loss_curr))
    print('G_loss: {:.7}'.format(G_loss_curr))
    print()

print('Saved in', saver.save(sess, 'out/gan', global_step=it))
writer.close()
sess.close()
