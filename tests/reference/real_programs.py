"""Four programs of TensorFlow 1, as they are written: what they train on, and how."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

import hookbridge as hb

v1: Any = tf.compat.v1
Arrays = dict[str, Any]
STEPS = 6
L2, CLIP, UNITS = 0.01, 0.15, 4

SHAPES: dict[str, dict[str, tuple[int, ...]]] = {
    "autoencoder": {
        "conv1/kernel": (3, 3, 1, 4),
        "conv1/bias": (4,),
        "conv2/kernel": (3, 3, 4, 6),
        "conv2/bias": (6,),
        "deconv2/bias": (4,),
        "deconv1/bias": (1,),
    },
    "policy": {
        "conv/kernel": (3, 3, 2, 4),
        "conv/bias": (4,),
        "policy/conv/kernel": (1, 1, 4, 3),
        "policy/conv/bias": (3,),
        "policy/dense/kernel": (48, 5),
        "policy/dense/bias": (5,),
        "value/dense/kernel": (64, 1),
        "value/dense/bias": (1,),
    },
    "lstm": {
        "rnn/kernel": (3 + UNITS, 4 * UNITS),
        "rnn/bias": (4 * UNITS,),
        "out/kernel": (UNITS, 3),
        "out/bias": (3,),
    },
    "normalized": {
        "hidden/kernel": (6, 8),
        "bn/gamma": (8,),
        "bn/beta": (8,),
        "bn/moving_mean": (8,),
        "bn/moving_variance": (8,),
        "out/kernel": (8, 4),
        "out/bias": (4,),
    },
}
EPSILON = 1e-3  # of the normalization


def initial(name: str) -> Arrays:
    rng = np.random.RandomState(11)
    found = {}
    for key, shape in SHAPES[name].items():
        scale = 0.1 if len(shape) == 1 else 1 / math.sqrt(math.prod(shape[:-1]))
        found[key] = rng.normal(0.0, scale, shape).astype("float32")
    if name == "normalized":
        found["bn/gamma"] += 1
        found["bn/moving_mean"][:] = 0
        found["bn/moving_variance"][:] = 1
    return found


def batches(name: str) -> list[Arrays]:
    rng = np.random.RandomState(12)

    def one() -> Arrays:
        if name == "autoencoder":
            return {"images": rng.rand(6, 8, 8, 1).astype("float32")}
        if name == "policy":
            chosen = rng.rand(8, 5).astype("float32")
            return {
                "boards": rng.normal(size=(8, 4, 4, 2)).astype("float32"),
                "probabilities": chosen / chosen.sum(1, keepdims=True),
                "rewards": np.sign(rng.normal(size=8)).astype("float32"),
            }
        if name == "lstm":
            return {
                "words": rng.normal(size=(10, 5, 3)).astype("float32"),
                "lengths": rng.randint(1, 6, 10).astype("int32"),
                "labels": rng.randint(0, 3, 10).astype("int32"),
            }
        return {
            "x": rng.normal(size=(12, 6)).astype("float32"),
            "y": rng.randint(0, 4, 12).astype("int32"),
        }

    return [one() for _ in range(STEPS)]


def record(name: str, folder: Path, *, adam: bool = False) -> None:
    """Trains in a session, as programs of TensorFlow 1 do; with Adam if asked."""
    data = batches(name)
    with tf.Graph().as_default():
        fed = {
            key: v1.placeholder(value.dtype, [None, *value.shape[1:]], name=key)
            for key, value in data[0].items()
        }
        w = {
            key: v1.get_variable(
                key, initializer=value, trainable="moving" not in key, use_resource=True
            )
            for key, value in initial(name).items()
        }
        step = v1.train.get_or_create_global_step()
        train_op = _TRAIN[name](fed, w, step, adam)
        hooks = hb.as_hooks([hb.recorder(folder, steps=STEPS)])
        with v1.train.MonitoredTrainingSession(hooks=hooks) as session:
            for batch in data:
                session.run(train_op, {fed[key]: batch[key] for key in fed})


def _autoencoder(fed: Arrays, w: Arrays, step: Any, adam: bool) -> Any:
    x, strides = fed["images"], [1, 2, 2, 1]
    h = tf.nn.conv2d(x, w["conv1/kernel"], strides, "SAME") + w["conv1/bias"]
    first = tf.nn.leaky_relu(h, 0.2)
    h = tf.nn.conv2d(first, w["conv2/kernel"], strides, "SAME") + w["conv2/bias"]
    h = tf.nn.leaky_relu(h, 0.2)
    h = tf.nn.conv2d_transpose(
        h, w["conv2/kernel"], tf.shape(first), strides, "SAME", name="conv2d_transpose"
    )
    h = tf.nn.leaky_relu(h + w["deconv2/bias"], 0.2)
    h = tf.nn.conv2d_transpose(
        h, w["conv1/kernel"], tf.shape(x), strides, "SAME", name="conv2d_transpose_1"
    )
    out = tf.nn.sigmoid(h + w["deconv1/bias"])
    loss = tf.reduce_mean(tf.square(out - x))
    rate = v1.train.exponential_decay(0.01, step, 2, 0.8, staircase=True)
    return v1.train.AdamOptimizer(rate, beta2=0.9).minimize(loss, step)


def _policy(fed: Arrays, w: Arrays, step: Any, adam: bool) -> Any:
    h = tf.nn.conv2d(fed["boards"], w["conv/kernel"], 1, "SAME") + w["conv/bias"]
    h = tf.nn.relu(h)
    p = tf.nn.conv2d(h, w["policy/conv/kernel"], 1, "SAME") + w["policy/conv/bias"]
    p = tf.reshape(tf.nn.relu(p), [-1, 48])
    logits = p @ w["policy/dense/kernel"] + w["policy/dense/bias"]
    v = tf.reshape(h, [-1, 64]) @ w["value/dense/kernel"] + w["value/dense/bias"]
    v = tf.tanh(v)[:, 0]
    cross_entropy = tf.nn.softmax_cross_entropy_with_logits(
        labels=fed["probabilities"], logits=logits
    )
    loss = tf.reduce_mean(cross_entropy) + tf.reduce_mean((v - fed["rewards"]) ** 2)
    kernels = [value for key, value in w.items() if key.endswith("kernel")]
    loss += L2 * tf.add_n([tf.nn.l2_loss(each) for each in kernels])
    rate = v1.train.piecewise_constant(step, [1, 3], [0.05, 0.03, 0.01])
    optimizer = v1.train.MomentumOptimizer(rate, 0.9)
    if adam:
        optimizer = v1.train.AdamOptimizer(rate)
    return optimizer.minimize(loss, step)


def _lstm(fed: Arrays, w: Arrays, step: Any, adam: bool) -> Any:
    x, lengths = fed["words"], fed["lengths"]
    h = c = tf.zeros([tf.shape(x)[0], UNITS])
    for t in range(5):
        z = tf.concat([x[:, t], h], 1) @ w["rnn/kernel"] + w["rnn/bias"]
        i, j, f, o = tf.split(z, 4, 1)
        new_c = tf.sigmoid(f + 1.0) * c + tf.sigmoid(i) * tf.tanh(j)
        new_h = tf.sigmoid(o) * tf.tanh(new_c)
        is_in = tf.cast(t < lengths, tf.float32)[:, None]
        c, h = is_in * new_c + (1 - is_in) * c, is_in * new_h + (1 - is_in) * h
    logits = h @ w["out/kernel"] + w["out/bias"]
    loss = tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels=fed["labels"], logits=logits
        )
    )
    rate = v1.train.exponential_decay(0.05, step, 3, 0.5, staircase=True)
    optimizer = v1.train.AdamOptimizer(rate)
    pairs = optimizer.compute_gradients(loss, v1.trainable_variables())
    gradients, variables = zip(*pairs, strict=True)
    gradients, _ = tf.clip_by_global_norm(gradients, CLIP)
    return optimizer.apply_gradients(zip(gradients, variables, strict=True), step)


def _normalized(fed: Arrays, w: Arrays, step: Any, adam: bool) -> Any:
    h = fed["x"] @ w["hidden/kernel"]
    mean, variance = tf.nn.moments(h, [0])
    for key, value in (("mean", mean), ("variance", variance)):
        moving = w[f"bn/moving_{key}"]
        change = moving.assign_sub((moving - value) * (1 - 0.9))
        v1.add_to_collection(v1.GraphKeys.UPDATE_OPS, change)
    h = tf.nn.batch_normalization(
        h, mean, variance, w["bn/beta"], w["bn/gamma"], EPSILON
    )
    logits = tf.nn.relu(h) @ w["out/kernel"] + w["out/bias"]
    loss = tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=fed["y"], logits=logits)
    )
    with tf.control_dependencies(v1.get_collection(v1.GraphKeys.UPDATE_OPS)):
        kind = v1.train.AdamOptimizer if adam else v1.train.AdagradOptimizer
        return kind(0.1).minimize(loss, step)


_TRAIN = {
    "autoencoder": _autoencoder,
    "policy": _policy,
    "lstm": _lstm,
    "normalized": _normalized,
}
