"""Trains an Estimator, exports it, and goes on with a `SavedModelEstimator`."""

import numpy as np
import tensorflow as tf

FOUR = np.arange(8, dtype=np.float32).reshape(4, 2) / 8
ONES = np.ones((4, 1), np.float32)


def model_fn(features, labels, mode):
    weights = tf.get_variable("w", [2, 1], initializer=tf.constant_initializer(0.5))
    y = tf.matmul(features["x"], weights)
    if mode == tf.estimator.ModeKeys.PREDICT:
        exported = {"serving_default": tf.estimator.export.PredictOutput({"y": y})}
        return tf.estimator.EstimatorSpec(mode, {"y": y}, export_outputs=exported)
    loss = tf.reduce_mean((y - labels) ** 2)
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    train_op = optimizer.minimize(loss, tf.train.get_global_step())
    metrics = {"mae": tf.metrics.mean_absolute_error(labels, y)}
    return tf.estimator.EstimatorSpec(
        mode, loss=loss, train_op=train_op, eval_metric_ops=metrics
    )


def input_fn():
    return tf.data.Dataset.from_tensors(({"x": FOUR}, ONES)).repeat(3)


def pictures():
    return tf.data.Dataset.from_tensors({"x": FOUR})


def told(estimator):
    values = estimator.evaluate(input_fn, steps=1)
    print("%(global_step)d %(loss).6f" % values)


estimator = tf.estimator.Estimator(model_fn, "model")
estimator.train(input_fn)
x = {"x": tf.placeholder(tf.float32, [None, 2])}
labels = tf.placeholder(tf.float32, [None, 1])
with_labels = tf.contrib.estimator.build_raw_supervised_input_receiver_fn(x, labels)
receivers = {
    tf.estimator.ModeKeys.TRAIN: with_labels,
    tf.estimator.ModeKeys.EVAL: with_labels,
    tf.estimator.ModeKeys.PREDICT: (
        tf.estimator.export.build_raw_serving_input_receiver_fn(x)
    ),
}
path = estimator.experimental_export_all_saved_models("exported", receivers)
again = tf.contrib.estimator.SavedModelEstimator(path, "again")
told(again)
again.train(input_fn, steps=3)
told(again)
print("%.6f" % next(again.predict(pictures))["y"][0])
