"""A model function with all kinds of updates, and data for it, to test towers."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

import hookbridge as hb

v1 = tf.compat.v1

BATCH, STEPS, EXAMPLES, WORDS, CLASSES = 8, 5, 40, 13, 3


def examples() -> tuple[dict[str, Any], Any]:
    rng = np.random.default_rng(2)
    features = {
        "x": rng.normal(size=(EXAMPLES, 4)).astype(np.float32),
        "words": rng.integers(0, WORDS, size=(EXAMPLES, 3)),
    }
    return features, rng.integers(0, CLASSES, size=EXAMPLES)


def training_input() -> Any:
    dataset = tf.data.Dataset.from_tensor_slices(examples())
    return dataset.batch(BATCH, drop_remainder=True)


def evaluation_input(batch_size: int) -> Any:
    return lambda: tf.data.Dataset.from_tensor_slices(examples()).batch(batch_size)


def model_fn(features: Any, labels: Any, mode: str) -> Any:
    """Dense and sparse gradients, update ops, and averages after the update."""
    starts = [v1.glorot_uniform_initializer(seed=seed) for seed in (1, 2)]
    table = v1.get_variable("table", [WORDS, 5], initializer=starts[0])
    words = tf.reduce_mean(tf.nn.embedding_lookup(table, features["words"]), axis=1)
    with v1.variable_scope(None, default_name="dense"):
        kernel = v1.get_variable("kernel", [9, CLASSES], initializer=starts[1])
    zero = v1.zeros_initializer()
    seen = v1.get_variable("seen", [], initializer=zero, trainable=False)
    inputs = tf.concat([features["x"], words], axis=1)
    logits = tf.matmul(inputs, kernel, name="logits")
    predictions = {"logits": logits, "class": tf.argmax(logits, axis=1)}
    spec = functools.partial(hb.estimator.EstimatorSpec, mode, predictions=predictions)
    if mode == "infer":
        output = hb.estimator.export.PredictOutput(predictions)
        return spec(export_outputs={"serving_default": output})
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=labels, logits=logits
    )
    loss = tf.reduce_mean(losses)
    if mode == "eval":
        metrics = {
            "accuracy": v1.metrics.accuracy(labels, predictions["class"]),
            "mean_loss": v1.metrics.mean(losses),
            "recall": v1.metrics.recall_at_k(labels, logits, k=2),
        }
        return spec(loss=loss, eval_metric_ops=metrics)
    one = tf.cast(tf.reduce_sum(features["x"]) > -1e9, tf.float32)
    v1.add_to_collection(v1.GraphKeys.UPDATE_OPS, seen.assign_add(one))
    optimizer = v1.train.MomentumOptimizer(0.1, 0.9)
    with tf.control_dependencies(v1.get_collection(v1.GraphKeys.UPDATE_OPS)):
        update = optimizer.minimize(loss, global_step=v1.train.get_global_step())
    average = tf.train.ExponentialMovingAverage(0.5)
    with tf.control_dependencies([update]):  # `apply` has to see the updated kernel
        train_op = average.apply([kernel])
    return hb.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def estimator(function: Any, model_dir: Path, towers: int = 4) -> Any:
    config = hb.estimator.RunConfig(
        model_dir=str(model_dir),
        tf_random_seed=1,
        session_config=hb.loops.session_config(hb.loops.tower_devices(towers)),
    )
    return hb.estimator.Estimator(function, config=config)


def trained(
    model_fn: Any, batch: Callable[[], Any], steps: int = 3
) -> tuple[list[float], dict[str, Any]]:
    """The losses and variables of a session loop; `batch()` is called in its graph."""
    config = hb.loops.session_config(hb.loops.tower_devices(4))
    # Optimizing a graph of many updates takes longer than its steps.
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    losses = []
    with tf.Graph().as_default():
        v1.train.create_global_step()
        spec = model_fn(*batch(), mode="train")
        variables = {each.op.name: each for each in v1.global_variables()}
        with hb.loops.training_session(config=config) as session:
            for _ in range(steps):
                losses.append(float(session.run([spec.loss, spec.train_op])[0]))
            return losses, session.run(variables)


def assert_same_values(ours: dict[str, Any], plain: dict[str, Any]) -> None:
    assert ours.keys() == plain.keys()
    for name, value in plain.items():
        np.testing.assert_allclose(
            ours[name], value, rtol=1e-4, atol=1e-5, err_msg=name
        )
