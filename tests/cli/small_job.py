"""A model definition file that trains one weight, for tests that spoil it."""

from __future__ import annotations

JOB = """
import sys
import numpy as np
import tensorflow as tf
import hookbridge as hb

v1 = tf.compat.v1
batch_size = 8

def model_fn(features, labels, mode):
    weight = v1.get_variable("weight", [], initializer=v1.zeros_initializer())
    loss = tf.reduce_mean((features * weight - labels) ** 2)
    train_op = v1.train.GradientDescentOptimizer(0.1).minimize(
        loss, v1.train.get_global_step())
    return hb.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

def train_input_fn():
    x = np.arange(48, dtype=np.float32)
    return tf.data.Dataset.from_tensor_slices((x, x)).batch(
        batch_size, drop_remainder=True)
"""
